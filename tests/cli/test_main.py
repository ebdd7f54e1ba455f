"""The door: verbs, exit codes, messages in place of tracebacks."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness import errors
from harness.cli import status
from harness.cli.main import VERBS, main
from harness.ledger.store import LedgerError
from harness.logs.errors import LogError
from tests.harness_process import ROOT

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
EXIT_CODES = {
    errors.HarnessError("what"): 4,
    errors.ConfigError("what"): 2,
    errors.UnknownName("verb", "x", ["y"]): 2,
    errors.MissingError("what"): 3,
    errors.DatasetError("what"): 3,
    errors.InUseError("what"): 3,
    errors.RunBroke("what"): 4,
    errors.EngineDied("what"): 4,
    errors.Refused("what"): 1,
    errors.Interrupted("what"): 130,
    LedgerError("what"): 3,
    LogError("what", Path("log")): 3,
}


@pytest.fixture(autouse=True)
def _signals_as_they_were():
    before = {number: signal.getsignal(number) for number in STOPS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def raising(error: BaseException):
    def run(argv: list[str]) -> int:
        raise error

    return run


def test_every_class_of_the_error_tree_has_its_exit_code_tested() -> None:
    classes = {cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, errors.HarnessError)}
    assert classes <= {type(error) for error in EXIT_CODES}


@pytest.mark.parametrize(("error", "code"), EXIT_CODES.items(), ids=lambda value: type(value).__name__)
def test_an_error_is_a_message_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: errors.HarnessError, code: int
) -> None:
    monkeypatch.setattr(status, "run", raising(error))
    assert main(["status"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert f"error: {error.what}" in err
    assert "Traceback" not in err


def test_a_message_is_printed_as_it_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = errors.ConfigError("[red] is not [/bold]", where="a[0]", expected="[x]", mend="write \\[y]")
    monkeypatch.setattr(status, "run", raising(error))
    assert main(["status"]) == 2
    err = capsys.readouterr().err
    for part in ("[red] is not [/bold]", "where: a[0]", "expected: [x]", "mend: write"):
        assert part in err


def test_control_c(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(status, "run", raising(KeyboardInterrupt()))
    assert main(["status"]) == 130
    assert "finished runs are as they were" in capsys.readouterr().err


@pytest.mark.parametrize("stop", STOPS)
def test_a_signal_ends_a_verb_as_control_c_does(monkeypatch: pytest.MonkeyPatch, stop: signal.Signals) -> None:
    def run(argv: list[str]) -> int:
        signal.raise_signal(stop)
        return 0

    monkeypatch.setattr(status, "run", run)
    assert main(["status"]) == 130


def test_a_second_signal_does_not_cut_off_what_the_first_began(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = []

    def run(argv: list[str]) -> int:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
            ended.append(True)
        return 0

    monkeypatch.setattr(status, "run", run)
    assert main(["status"]) == 130
    assert ended


def test_a_signal_works_again_where_nothing_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("harness.cli.main.time.monotonic", lambda: now[0])

    def run(argv: list[str]) -> int:
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        now[0] += 31
        signal.raise_signal(signal.SIGINT)
        return 0

    monkeypatch.setattr(status, "run", run)
    assert main(["status"]) == 130


def test_what_nohup_ignores_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(argv: list[str]) -> int:
        signal.raise_signal(signal.SIGHUP)
        return 0

    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    monkeypatch.setattr(status, "run", run)
    assert main(["status"]) == 0


def test_a_fault_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "run", raising(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        main(["status"])


def test_a_fault_of_ours_is_no_verdict() -> None:
    program = (
        "import runpy, sys; from harness.cli import status; status.run = lambda argv: 1 / 0;"
        "sys.argv = ['harness', 'status']; runpy.run_module('harness', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 4
    assert "ZeroDivisionError" in done.stderr


def test_what_the_machine_refuses_is_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(status, "run", raising(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/a/file")))
    assert main(["status"]) == 3
    err = capsys.readouterr().err
    assert "No space left on device" in err
    assert "where: /a/file" in err


def test_a_missing_file_that_nobody_foresaw_is_a_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "run", raising(FileNotFoundError(errno.ENOENT, "no such file")))
    with pytest.raises(FileNotFoundError):
        main(["status"])


def test_a_terminal_without_our_letters() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harness", "help"],
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert done.returncode == 0
    assert b"run_harness" in done.stdout


def test_an_unknown_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run_harnes"]) == 2
    err = capsys.readouterr().err
    assert "unknown verb 'run_harnes'" in err
    assert "did you mean 'run_harness'?" in err


@pytest.mark.parametrize("argv", [[], ["-h"], ["--help"], ["help"]])
def test_help_lists_every_verb(capsys: pytest.CaptureFixture[str], argv: list[str]) -> None:
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert "python -m harness VERB [options]" in out
    for verb, meaning in VERBS.items():
        assert verb in out
        assert meaning in out


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb(capsys: pytest.CaptureFixture[str], verb: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"])
    assert ended.value.code == 0
    assert f"python -m harness {verb}" in capsys.readouterr().out


@pytest.mark.parametrize("verb", VERBS)
def test_an_option_that_a_verb_does_not_have(capsys: pytest.CaptureFixture[str], verb: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main([verb, "--no-such-option"])
    assert ended.value.code == 2
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_a_module_that_runs(verb: str) -> None:
    module = importlib.import_module(f"harness.cli.{verb}")
    assert callable(module.run)
    assert module.__doc__


def test_the_program_itself() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harness", "no_such_verb"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: unknown verb 'no_such_verb'")
