"""Small real runs of LoadGen, each in a process of its own, for tests that read what it writes."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

from harness.rules import load

PROGRAM = Path(__file__).with_name("loadgen_program.py")


@dataclass(frozen=True)
class Leg:
    """What a run asks of LoadGen. Answers are instant, of ``answer_tokens`` ids; ``conf`` is the user.conf.

    ``audit`` is the audit.config, none where empty.
    """

    scenario: str
    mode: str
    rows: int
    conf: dict[str, str] = field(default_factory=dict)
    model: str = "gpt-oss-120b"
    answer_tokens: int = 4
    first_tokens: bool = True
    audit: dict[str, int] = field(default_factory=dict)

    def run(self, out: Path) -> Path:
        out.mkdir(parents=True)
        user_conf = out / "user.conf"
        user_conf.write_text("".join(f"{k} = {v}\n" for k, v in self.conf.items()))
        if self.audit:
            (out / "audit.config").write_text("".join(f"*.*.{k} = {v}\n" for k, v in self.audit.items()))
        done = subprocess.run(
            [sys.executable, str(PROGRAM), json.dumps(asdict(self)), str(out)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return out


# Offline at 10 queries/s and Server at 4,000 cover the whole data set at once; both durations are seconds at most.
LEGS = {
    ("Offline", "performance"): Leg(
        "Offline", "PerformanceOnly", 6396, {"*.Offline.target_qps": "10", "*.Offline.min_query_count": "6396"}
    ),
    ("Server", "performance"): Leg(
        "Server", "PerformanceOnly", 6396, {"*.Server.target_qps": "4000", "*.Server.min_duration": "1000"}
    ),
    ("Offline", "accuracy"): Leg("Offline", "AccuracyOnly", 4395, {"*.Offline.target_qps": "10"}),
    ("Server", "accuracy"): Leg("Server", "AccuracyOnly", 4395, {"*.Server.target_qps": "8000"}),
}
# The audits, with the settings of the approved audit.config.
LEGS |= {
    (scenario, name): Leg(
        scenario,
        "PerformanceOnly",
        audit.rows.value,
        {
            f"*.{scenario}.target_qps": "8000",
            # The samples of Offline's query are drawn from the override, which must not be more than there are.
            f"gpt-oss-120b.{scenario}.performance_sample_count_override": str(audit.rows.value),
        },
        audit=audit.config.settings.value,
    )
    for scenario in ("Offline", "Server")
    for name, audit in load("v6.1").benchmark("gpt-oss-120b").audit_rules.items()
}
BROKEN = Leg(
    "Server",
    "PerformanceOnly",
    64,
    {
        "*.Server.target_qps": "500",
        "*.Server.min_duration": "300",
        "gpt-oss-120b.Server.performance_sample_count_override": "64",
    },
    answer_tokens=1,
)


@pytest.fixture(scope="session")
def loadgen_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """(scenario, leg) -> folder of a real run's logs. Read-only by agreement: copy before changing."""
    return _run_all(tmp_path_factory.getbasetemp() / "loadgen")


@functools.cache  # folders of tests that import the fixture share one set of runs
def _run_all(root: Path) -> dict[tuple[str, str], Path]:
    return {key: leg.run(root / "_".join(key)) for key, leg in LEGS.items()}


@pytest.fixture(scope="session")
def broken_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run whose answers have one token: LoadGen logs an error a sample and says INVALID."""
    return BROKEN.run(tmp_path_factory.mktemp("loadgen_broken") / "run")


def edit(log: Path, **values: object) -> Path:
    """Changes values in a detail log, in place; every key must be there. Ellipsis removes the record."""
    text = log.read_text()
    for key, value in values.items():
        name = key.replace("p99_", "99.00_percentile_")
        pattern = re.compile(rf'^:::MLLOG {{"key": "{re.escape(name)}", "value": (.*?), "time_ms".*$\n', re.MULTILINE)
        match = pattern.search(text)
        assert match, f"{name} is not in {log}"
        whole = match.group(0)
        new = "" if value is ... else whole.replace(match.group(1), json.dumps(value), 1)
        text = text.replace(whole, new)
    log.write_text(text)
    return log
