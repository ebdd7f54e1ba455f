"""How large a report over four runs of a million samples each is, and what it takes to make it.

Goals: the page below 3 MB; drawing a typical book (the four runs, already gathered) below 5 s. The runs are made up;
each figure is of the process that this starts for the report alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import QUIET_CORES, busy_s, peak_mb

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.report.book.made import made_run  # noqa: E402

SCENARIOS = ("Offline", "Server", "Interactive", "SingleStream")
PAGE_BYTES, DRAWING_S = 3_000_000, 5.0


def report(results: Path) -> None:
    """Makes the report as the verb does, and says what its parts took; in a process of its own."""
    from harness.report.book.gather import gather
    from harness.report.page.render import render

    busy, begun = busy_s(), time.monotonic()
    cpu = time.process_time()
    book = gather(results)
    gathered, gathered_cpu = time.monotonic(), time.process_time()
    page = render(book)
    drawn, drawn_cpu = time.monotonic(), time.process_time()
    others = (busy_s() - busy - (drawn_cpu - cpu)) / (drawn - begun)
    figures = {
        "bytes": len(page.encode()),
        "gathering_s": gathered - begun,
        "gathering_cpu_s": gathered_cpu - cpu,
        "drawing_s": drawn - gathered,
        "drawing_cpu_s": drawn_cpu - gathered_cpu,
        "peak_mb": peak_mb(),
        "others": others,
    }
    print(json.dumps(figures))


def main() -> int:
    """Prints the figures beside their goals; 1 where one is missed on a quiet machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1_000_000, help="of each of the four runs")
    parser.add_argument("--of", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.of is not None:
        report(args.of)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        for scenario in SCENARIOS:
            made_run(results, args.samples, scenario, failed=7)
        command = [sys.executable, __file__, "--of", str(results)]
        told = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    found = json.loads(told.stdout)
    print(f"a report over {len(SCENARIOS)} runs of {args.samples:,} samples")
    print(f"  page       {found['bytes'] / 1e6:.2f} MB (goal: below {PAGE_BYTES / 1e6:g})")
    print(f"  gathering  {found['gathering_s']:.1f} s, CPU {found['gathering_cpu_s']:.1f} s")
    print(f"  drawing    {found['drawing_s']:.1f} s, CPU {found['drawing_cpu_s']:.1f} s (goal: below {DRAWING_S:g} s)")
    print(f"  memory     {found['peak_mb']:.0f} MB at most")
    busy = found["others"] > QUIET_CORES
    if busy:
        print(f"  others used {found['others']:.2f} cores meanwhile: seconds say nothing")
    return int(found["bytes"] >= PAGE_BYTES or (not busy and found["drawing_s"] >= DRAWING_S))


if __name__ == "__main__":
    sys.exit(main())
