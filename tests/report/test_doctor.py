from __future__ import annotations

import io

import pytest
from rich.console import Console

from harness.machine.doctor.check import Check, Question
from harness.report.doctor import as_json, rendered

MEMORY = Question("memory", "ecc-host", "on", "a rule", "policies", "reboot")
CLOCK = Question("clock", "time-sync", "kept", "logs", "adjtimex", "sudo timedatectl set-ntp true")
CHECKS = [MEMORY.ok("on", "/sys"), CLOCK.warn("not [kept]", "adjtimex"), CLOCK.unknown("no right\x1b[31m")]


def shown(checks: list[Check], width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, soft_wrap=True)
    console.print(rendered(checks, "BOX (gpt-oss-120b)"))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_checks_by_subject_then_mends_the_worst_first() -> None:
    text = shown([*CHECKS, MEMORY.fail("off", "/sys/devices"), CLOCK.missing("no clock", "/dev")])
    assert "This machine, held against BOX (gpt-oss-120b)" in text
    assert "on  /sys" in text
    lines = [line for line in text.splitlines() if line.startswith(("fail ", "warn ", "unknown "))]
    assert lines == [
        "fail time-sync: no clock",
        "fail ecc-host: off",
        "warn time-sync: not [kept]",
        r"unknown time-sync: no right\x1b[31m",
    ]
    assert text.splitlines()[-1] == "2 fail, 1 warn, 1 unknown, 1 ok: something is missing that a run needs"


def test_a_mend_is_one_line_to_copy() -> None:
    assert "  mend: sudo timedatectl set-ntp true\n" in shown(CHECKS, width=20)


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (MEMORY.ok("on", "/sys"), "nothing that would spoil or forbid a run was found"),
        (MEMORY.fail("off", "/sys"), "a run would be spoilt or may not be filed"),
        (MEMORY.missing("none", "/sys"), "something is missing that a run needs"),
    ],
)
def test_the_last_line_says_what_the_exit_code_says(last: Check, said: str) -> None:
    assert shown([last]).strip().endswith(said)


def test_all_of_it_as_data() -> None:
    data = as_json(CHECKS, ["BOX"], ["gpt-oss-120b"], "v6.1")
    assert (data["exit_code"], data["counts"]) == (0, {"fail": 0, "warn": 1, "unknown": 1, "ok": 1})
    assert (data["systems"], data["benchmarks"], data["round"]) == (["BOX"], ["gpt-oss-120b"], "v6.1")
    first, _, unknown = data["checks"]
    assert first == {
        "subject": "memory", "name": "ecc-host", "state": "ok", "read": "on", "source": "/sys", "expected": "on",
        "why": "a rule", "authority": "policies", "mend": None, "missing": False,
    }  # fmt: skip
    assert (unknown["read"], unknown["source"]) == (None, "no right\x1b[31m")
