"""A small clone of the reference: a truncation and an evaluator that behave as told, for the flow around them."""

from __future__ import annotations

from pathlib import Path

from harness.gate.clone import EVALUATORS
from harness.submission.official import TRUNCATE

_TRUNCATION = """
import argparse, hashlib, pathlib
p = argparse.ArgumentParser()
for name in ("input", "submitter", "backup"):
    p.add_argument("--" + name)
a = p.parse_args()
row = next(pathlib.Path(a.input).glob("open/" + a.submitter + "/results/*/*/*"))
(log,) = row.rglob("accuracy/mlperf_log_accuracy.json")
data = log.read_bytes()
text = log.with_name("accuracy.txt")
HASH = True
if HASH and log.relative_to(row).parts[0].startswith("TEST"):
    text.write_text("hash=" + hashlib.sha256(data).hexdigest() + "\\n")
elif HASH:
    text.write_bytes(text.read_bytes() + b"\\nhash=" + hashlib.sha256(data).hexdigest().encode() + b"\\n")
KEPT = 4096
log.write_bytes(data[:KEPT] + b"\\n\\n...\\n\\n" + data[-KEPT:] if len(data) >= 4096 else data)
"""

# The form of the reference's output; its counts come from a table.
_EVALUATION = """
import argparse, json, pathlib, sys
p = argparse.ArgumentParser()
p.add_argument("--mlperf-log"); p.add_argument("--reference-data")
a = p.parse_args()
assert pathlib.Path(a.reference_data).is_file()
rows = len(json.loads(pathlib.Path(a.mlperf_log).read_text()))
print("Loaded 1055 problems")
print("Total samples evaluated:", rows)
print(f"{'Dataset':25s} {'Correct':>8s} {'Total':>8s} {'Repeats':>8s} {'Score':>10s} {'Accuracy':>10s}")
for name, right, total, repeats in COUNTS:
    print(f"{name:25s} {right:8d} {total:8d} {repeats:8d} {right / repeats:10.2f} {100 * right / total:9.2f}%")
if BROKEN:
    print("RuntimeError: LiveCodeBench benchmark failed to load", file=sys.stderr)
    sys.exit(0)
print("Printing for submission_checker:")
print(f"\\n'exact_match': {61.5:.3f}")
"""

COUNTS = [("aime25", 144, 240, 8), ("gpqa_diamond", 396, 990, 5), ("livecodebench_v6", 2700, 3165, 3)]


def make_clone(
    root: Path,
    *,
    counts: list[tuple[str, int, int, int]] | None = None,
    broken: bool = False,
    kept: int = 4096,
    hashes: bool = True,
) -> Path:
    """Writes the clone's two programs."""
    truncation = _TRUNCATION.replace("KEPT = 4096", f"KEPT = {kept}").replace("HASH = True", f"HASH = {hashes}")
    evaluation = f"COUNTS = {COUNTS if counts is None else counts}\nBROKEN = {broken}\n{_EVALUATION}"
    for path, text in ((TRUNCATE, truncation), (EVALUATORS["gpt-oss-120b"], evaluation)):
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text(text)
    return root
