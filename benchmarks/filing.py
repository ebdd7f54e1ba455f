"""Files one accuracy log and says its hash and the process's peak memory; ``scoring.py`` starts it.

It loads no more than that needs, so that its memory says something about truncating.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from machine import peak_mb

from harness import rules
from harness.submission.truncate import file_accuracy


def main(log: Path) -> None:
    """Truncates and hashes a log."""
    pack = rules.load(rules.LATEST)
    filed = file_accuracy(log, b"", pack)
    assert len(filed.log) < pack.accuracy_log_max_bytes.value < filed.bytes_full
    print(json.dumps([filed.sha256_full, peak_mb()]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
