"""The rules of the network division, and of descriptions that speak of it elsewhere."""

from __future__ import annotations

from harness.gate.findings import Severity, rule

_REJECT = Severity.REJECT

MODE = rule(
    "NET-MODE",
    _REJECT,
    "is_network the text true in the network division, and not in closed",
    mend="correct is_network, or move the result to the division that it was measured for",
    source="checker/checks/system_check.py network_check, performance_check.py network_check",
)
FIELD = rule(
    "NET-FIELD",
    _REJECT,
    "the fields of a network's system, wherever is_network is said",
    mend="say them in the description; outside the network division leave is_network out",
    source="checker/checks/system_check.py required_fields_check",
)
SUT = rule(
    "NET-SUT",
    _REJECT,
    "a SUT whose name tells that it is reached over a network",
    mend="name the SUT so when it is constructed and run the row again: LoadGen logs the name",
    source="checker/checks/performance_check.py network_check",
)
