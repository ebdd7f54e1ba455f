"""A worker that is started while somebody presses ^C, and what is said of one that ended without an outcome."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from harness.clients.loadgen import launch
from harness.clients.loadgen.job import WORKER_LOG
from harness.errors import RunBroke
from harness.events import ignore

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_DUE: list[signal.Signals] = []
os.register_at_fork(after_in_parent=lambda: signal.raise_signal(_DUE.pop()) if _DUE else None)


@contextlib.contextmanager
def told_in_the_fork(number: signal.Signals) -> Iterator[None]:
    """A signal comes while the next process is forked: into a hook, out of which Python lets nothing be raised."""
    _DUE.append(number)
    try:
        yield
    finally:
        _DUE.clear()


def stop(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_while_the_worker_is_forked_is_not_lost(tmp_path: Path, number: signal.Signals) -> None:
    before = {each: signal.signal(each, stop) for each in STOPS}
    job: Any = SimpleNamespace(folder=str(tmp_path), model_dump_json=lambda indent: "{}")
    try:
        with told_in_the_fork(number), pytest.raises(KeyboardInterrupt):
            launch.run_job(job, "leg", ignore)
        assert [signal.getsignal(each) for each in STOPS] == [stop] * 3
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    assert not (tmp_path / "cwd").exists()  # the worker has been waited for


@pytest.mark.parametrize(
    ("status", "log", "said", "mend"),
    [
        (-signal.SIGKILL, "", "was ended by SIGKILL", "dmesg"),
        (-signal.SIGBUS, "a line\n", "was ended by SIGBUS", "dmesg"),
        (1, "", "ended with 1", "disk is full"),
        (3, "one\ntwo\n", "ended with 3 and left no outcome; its last lines:\n    one\n    two", None),
    ],
)
def test_a_worker_without_an_outcome(tmp_path: Path, status: int, log: str, said: str, mend: str | None) -> None:
    (tmp_path / WORKER_LOG).write_text(log)
    with pytest.raises(RunBroke) as caught:
        launch._outcome(tmp_path, status)
    assert said in caught.value.what
    assert caught.value.where == str(tmp_path / WORKER_LOG)
    assert (caught.value.mend is None) if mend is None else (mend in (caught.value.mend or ""))


def test_a_worker_that_found_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / WORKER_LOG).write_text("what it could still say\n")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: namedtuple("Usage", "free")(0))
    with pytest.raises(RunBroke) as caught:
        launch._outcome(tmp_path, 3)
    assert "what it could still say" in caught.value.what
    assert caught.value.mend == "free space on this disk: there is none left"
