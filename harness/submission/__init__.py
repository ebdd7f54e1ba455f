"""From runs to the tree that is submitted."""

from harness.submission.folder import PackedRow
from harness.submission.package import PackageReport, package

__all__ = ["PackageReport", "PackedRow", "package"]
