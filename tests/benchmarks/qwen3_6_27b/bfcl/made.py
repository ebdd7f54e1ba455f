"""A made-up environment of bfcl-eval: a real one of Python's, with a double of the package in it."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import rules
from harness.benchmarks.qwen3_6_27b.bfcl.environment import Environment
from harness.benchmarks.qwen3_6_27b.bfcl.subsets import CATEGORIES, CATEGORY_OF, HALLUCINATION, SUBSETS
from harness.rules.benchmark import TrajectoryRules
from tests.harness_process import ROOT

DOUBLE = ROOT / "tests" / "doubles" / "bfcl_eval"


def agentic() -> TrajectoryRules:
    found = rules.load("v6.1").benchmark("qwen3.6-27b")
    assert isinstance(found, TrajectoryRules)
    return found


RULES = agentic()
TOTALS = {subset: 40 if subset.startswith("simple") else 4 for subset in SUBSETS}


def row(subset: str, number: int, prefix: str = "standin_") -> dict[str, Any]:
    """A question: which bed of the garden is watered."""
    return {
        "id": f"{prefix}{subset}_{number}",
        "question": [[{"role": "system", "content": None}, {"role": "user", "content": f"Water bed {number}: Grüße"}]],
        "function": [
            {
                "name": "garden.water",
                "description": "Waters a bed.",
                "parameters": {
                    "type": "dict",
                    "properties": {"bed": {"type": "integer"}, "litres": {"type": "float"}},
                    "required": ["bed"],
                },
            }
        ],
    }


def truth(subset: str, number: int) -> list[dict[str, Any]]:
    calls = 2 if "parallel" in subset else 1
    return [{"garden.water": {"bed": [number + i], "litres": [1.5, ""]}} for i in range(calls)]


def right_calls(subset: str, number: int) -> tuple[dict[str, Any], ...]:
    """The tool calls of a right answer; none where no function is of use."""
    if CATEGORY_OF[subset] == HALLUCINATION:
        return ()
    said = [each["garden.water"]["bed"][0] for each in truth(subset, number)]
    beds = [str(bed) if subset in ("simple_java", "simple_javascript") else bed for bed in said]
    return tuple({"function": {"name": "garden_water", "arguments": json.dumps({"bed": bed})}} for bed in beds)


def write_data(folder: Path, totals: Mapping[str, int] = TOTALS, prefix: str = "standin_") -> None:
    """The package's data; the last line has no end, as in the real one."""
    (folder / "possible_answer").mkdir(parents=True)
    for subset, total in totals.items():
        name = f"BFCL_v4_{subset}.json"
        rows = [row(subset, number, prefix) for number in range(total)]
        (folder / name).write_text("\n".join(json.dumps(each) for each in rows), encoding="utf-8")
        if subset not in CATEGORIES[HALLUCINATION]:
            answers = [{"id": each["id"], "ground_truth": truth(subset, i)} for i, each in enumerate(rows)]
            (folder / "possible_answer" / name).write_text("\n".join(map(json.dumps, answers)), encoding="utf-8")


def site_packages(environment: Path) -> Path:
    return environment / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def install(environment: Path, version: str, totals: Mapping[str, int] = TOTALS, prefix: str = "standin_") -> Path:
    """Puts the double into a new environment as an installer does; returns its Python."""
    venv.create(environment, symlinks=True, with_pip=False)
    site = site_packages(environment)
    shutil.copytree(DOUBLE, site / "bfcl_eval", ignore=shutil.ignore_patterns("__pycache__"))
    write_data(site / "bfcl_eval" / "data", totals, prefix)
    info = site / f"bfcl_eval-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: bfcl-eval\nVersion: {version}\n")
    write_record(site, info)
    return environment / "bin" / "python"


def write_record(site: Path, info: Path) -> None:
    """RECORD, with the hash of every file that is there."""
    lines = []
    for path in sorted((site / "bfcl_eval").rglob("*")):
        if path.is_file():
            digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).decode().rstrip("=")
            lines.append(f"{path.relative_to(site)},sha256={digest},{path.stat().st_size}\n")
    (info / "RECORD").write_text("".join(lines))


def made_environment(folder: Path) -> Environment:
    return Environment(install(folder, RULES.accuracy_data.value.version), RULES.accuracy_data.value)


def reply(content: str = "", calls: Sequence[object] = ()) -> bytes:
    """An answer as it is logged."""
    return json.dumps({"content": content} | ({"tool_calls": list(calls)} if calls else {})).encode()
