"""What is said of a worker that ended without an outcome."""

from __future__ import annotations

import shutil
import signal
from collections import namedtuple
from pathlib import Path

import pytest

from harness.clients.loadgen import launch
from harness.clients.loadgen.job import WORKER_LOG
from harness.errors import RunBroke


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
