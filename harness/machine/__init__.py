"""What the machine that serves is: captured when a leg starts, described when it is submitted."""

from harness.machine.capture import capture

__all__ = ["capture"]
