"""Whether the clone of mlcommons/inference that is named is there and of the round's commit: the doctor's question."""

from __future__ import annotations

from typing import Final

from harness.env import MLPERF_INFERENCE_DIR
from harness.gate.clone import Clone
from harness.gate.official import CHECKER
from harness.machine.doctor.check import Check, question
from harness.rules import RulePack

CLONE: Final = question(
    "software",
    "reference-clone",
    expected="a clone of mlcommons/inference at the round's commit",
    why="with it the reference's own programs check the tree, verify audits and score; without it nobody does",
    authority="the rule pack: sources",
    mend="git clone https://github.com/mlcommons/inference, git checkout <the round's commit>, and "
    f"export {MLPERF_INFERENCE_DIR.name}=<the clone>",
)


def reference_clone(pack: RulePack) -> Check:
    """The clone that the environment names. No program of it is run."""
    root, wanted = Clone.named_root(), pack.sources["inference"].commit
    source = f"${MLPERF_INFERENCE_DIR.name}"
    if root is None:
        return CLONE.warn("none is named", source)
    clone = Clone(root)
    if not clone.has(CHECKER):
        return CLONE.fail(f"{root} has no {CHECKER}", source)
    commit = clone.revision([CHECKER.parent])
    read = f"{root} at {commit or 'an unknown commit'}"
    mend = f"git -C {root} checkout {wanted}"
    return CLONE.ok(read, source) if commit == wanted else CLONE.warn(read, source, expected=wanted, mend=mend)
