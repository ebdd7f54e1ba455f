"""The results folder: numbering, records that are never written twice, the lock, and full disks."""

from __future__ import annotations

import errno
import fcntl
import json
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.errors import InUseError, MissingError
from harness.ledger import ResultsStore, RunId, State, read_record, write_record
from harness.ledger.record import Result
from harness.ledger.store import RECORD, LedgerError, write_atomically
from tests.harness_process import ROOT
from tests.ledger.made_records import add, finished, record

LEG = ("BOX", "gpt-oss-120b", "Offline", "performance")


@pytest.fixture
def store(tmp_path: Path) -> ResultsStore:
    return ResultsStore(tmp_path / "results")


def test_attempts_are_numbered_from_one(store: ResultsStore) -> None:
    made = [store.new_attempt(*LEG) for _ in range(3)]
    assert [run_id.attempt for run_id, _ in made] == [1, 2, 3]
    assert made[2][1] == store.root / "BOX/gpt-oss-120b/Offline/performance/attempt_03"
    assert store.new_attempt("BOX", "gpt-oss-120b", "Server", "performance")[0].attempt == 1


def test_a_gap_is_not_filled(store: ResultsStore) -> None:
    parent = store.root.joinpath(*LEG)
    for name in ("attempt_02", "attempt_117", "attempt_x", "notes"):
        (parent / name).mkdir(parents=True)
    assert store.new_attempt(*LEG)[0].attempt == 118


def test_attempts_made_at_once_are_all_different(store: ResultsStore) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: store.new_attempt(*LEG)[0].attempt, range(40)))
    assert sorted(made) == list(range(1, 41))


def test_runs_and_the_newest_finished(store: ResultsStore) -> None:
    assert store.runs() == []
    add(store)
    second = add(store, result=Result(key="k", value=2.0, units="u"))
    add(store, "Server")
    run_id, broken = store.new_attempt(*LEG)
    write_record(broken, record(run_id, state=State.BROKEN))
    store.new_attempt(*LEG)  # a folder without a record is no run
    assert len(store.runs()) == 4
    newest = store.latest_finished(*LEG)
    assert newest is not None
    assert newest.folder == second
    assert newest.logs == second / "logs"
    assert store.latest_finished(*LEG[:3], "accuracy") is None


def test_the_newest_is_the_highest_number_not_the_last_name(store: ResultsStore) -> None:
    (store.root.joinpath(*LEG) / "attempt_98").mkdir(parents=True)
    add(store)
    newest = add(store)
    assert newest.name == "attempt_100"
    found = store.latest_finished(*LEG)
    assert found is not None
    assert found.folder == newest


def test_the_newest_of_a_leg_does_not_depend_on_the_records_of_others(store: ResultsStore) -> None:
    newest = add(store)
    (add(store, "Server") / RECORD).write_text("{")
    found = store.latest_finished(*LEG)
    assert found is not None
    assert found.folder == newest
    (newest / RECORD).write_text("{")
    with pytest.raises(LedgerError):
        store.latest_finished(*LEG)


@pytest.mark.parametrize("state", [State.FINISHED, State.BROKEN, State.INTERRUPTED])
def test_a_record_of_a_run_that_ended_is_never_written_again(store: ResultsStore, state: State) -> None:
    run_id, folder = store.new_attempt(*LEG)
    write_record(folder, record(run_id))
    ended = finished(run_id).model_copy(update={"state": state})
    write_record(folder, ended)
    before = (folder / RECORD).read_bytes()
    for after in (record(run_id), ended, finished(run_id)):
        with pytest.raises(LedgerError, match="never written again"):
            write_record(folder, after)
    assert (folder / RECORD).read_bytes() == before
    assert read_record(folder / RECORD) == ended


def test_a_run_that_was_measured_may_be_judged_but_not_run_again(store: ResultsStore) -> None:
    run_id, folder = store.new_attempt(*LEG)
    write_record(folder, record(run_id))
    measured = record(run_id, state=State.MEASURED)
    write_record(folder, measured)
    with pytest.raises(LedgerError, match="never written again"):
        write_record(folder, record(run_id))
    write_record(folder, measured)
    write_record(folder, finished(run_id))
    with pytest.raises(LedgerError, match="never written again"):
        write_record(folder, measured)


def test_a_record_that_could_not_be_read_is_not_written(store: ResultsStore) -> None:
    run_id, folder = store.new_attempt(*LEG)
    with pytest.raises(ValueError, match="verdict"):
        write_record(folder, record(run_id).model_copy(update={"state": State.FINISHED}))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text[: len(text) // 2], "Invalid JSON"),
        (lambda text: "", "Invalid JSON"),
        (lambda text: "[]", "object"),
        (lambda text: text.replace('"finished"', '"done"'), "state"),
        (lambda text: text.replace('"schema_version": 1', '"schema_version": 2'), "schema_version"),
        (lambda text: text.replace('"attempt": 1', '"attempt": "one"'), "id.attempt"),
        (lambda text: text.replace('"note": null', '"remark": null'), "remark"),
        (lambda text: text.replace("BOX", "\x00"), "Invalid JSON"),
    ],
)
def test_a_record_that_was_cut_or_edited(store: ResultsStore, damage, said: str) -> None:
    path = add(store) / RECORD
    text = path.read_text()
    assert damage(text) != text
    path.write_text(damage(text))
    with pytest.raises(LedgerError) as caught:
        store.runs()
    assert said in caught.value.what
    assert caught.value.where == str(path)
    assert "nothing in it is lost" in (caught.value.mend or "")


def test_a_record_that_is_no_text(store: ResultsStore) -> None:
    path = add(store) / RECORD
    path.write_bytes(b"\xff" * 20)
    with pytest.raises(LedgerError):
        store.runs()
    path.unlink()
    with pytest.raises(LedgerError, match="No such file"):
        read_record(path)


# -- the lock ----------------------------------------------------------------------------------------------------------

HOLDER = """
import sys, time
from pathlib import Path
from harness.ledger import ResultsStore
with ResultsStore(Path(sys.argv[1])).lock():
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_folder_held_by_another_process_until_it_dies(store: ResultsStore) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, store.root], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(InUseError) as caught, store.lock():
            pass
        assert f"in use by process {holder.pid}" in caught.value.what
        assert "--results_dir" in (caught.value.mend or "")
        assert caught.value.exit_code == 3
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate(timeout=10)
    with store.lock():
        pass


def test_a_lock_is_let_go_after_an_error_and_names_nobody(store: ResultsStore) -> None:
    with pytest.raises(KeyError), store.lock():
        assert (store.root / ".lock").read_text().startswith("process ")
        raise KeyError
    assert (store.root / ".lock").read_text() == ""
    with store.lock():
        pass


def test_looking_whether_a_folder_is_in_use_makes_and_holds_nothing(store: ResultsStore) -> None:
    assert not store.in_use()
    assert not store.root.exists()
    with store.lock():
        assert store.in_use()
    assert not store.in_use()
    with store.lock():
        pass


def test_whoever_only_looks_does_not_keep_a_harness_from_starting(store: ResultsStore) -> None:
    with store.lock():
        pass
    with (store.root / ".lock").open() as looker:
        fcntl.flock(looker, fcntl.LOCK_SH)
        threading.Timer(0.05, fcntl.flock, (looker, fcntl.LOCK_UN)).start()
        with store.lock():
            assert store.in_use()


def test_a_lock_holds_where_the_disk_has_no_room_for_a_name(
    store: ResultsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("harness.ledger.store.os.write", full)
    with store.lock(), pytest.raises(InUseError, match="in use by another process"), ResultsStore(store.root).lock():
        pass


def test_a_results_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file")
    with (
        pytest.raises(MissingError, match="cannot work in the results folder"),
        ResultsStore(tmp_path / "results").lock(),
    ):
        pass


# -- whole files -------------------------------------------------------------------------------------------------------

FULL = """
import resource, signal, sys
from pathlib import Path
from harness.errors import MissingError
from harness.ledger.store import write_atomically
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    write_atomically(Path(sys.argv[1]), "new" * 4096)
except MissingError as error:
    print(error)
    sys.exit(error.exit_code)
"""


def test_a_full_disk_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_atomically(path, "old")
    done = subprocess.run([sys.executable, "-c", FULL, path], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 3, done.stderr
    assert "cannot write" in done.stdout
    assert "free space" in done.stdout
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


FULL_LEDGER = """
import resource, signal, sys
from pathlib import Path
from harness.errors import MissingError
from harness.ledger import State, read_record, write_record
folder = Path(sys.argv[1])
before = read_record(folder / "run.json")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))
try:
    write_record(folder, before.model_copy(update={"state": State.MEASURED}))
except MissingError as error:
    print(error)
    sys.exit(error.exit_code)
"""


def test_a_full_disk_keeps_the_record_of_a_run(store: ResultsStore) -> None:
    run_id, folder = store.new_attempt(*LEG)
    write_record(folder, record(run_id))
    command = [sys.executable, "-c", FULL_LEDGER, folder]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 3, done.stderr
    assert "free space" in done.stdout
    assert read_record(folder / RECORD) == record(run_id)
    assert [path.name for path in folder.iterdir()] == [RECORD]


def test_a_file_is_replaced_whole_and_readable(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_atomically(path, "one")
    write_atomically(path, "zw\u00f6lf\n")
    assert path.read_text(encoding="utf-8") == "zw\u00f6lf\n"
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="cannot write") as caught:
        write_atomically(tmp_path / "none" / "a.txt", "x")
    assert caught.value.mend == "give a file that can be written there"


def test_records_are_written_for_people_too(store: ResultsStore) -> None:
    text = (add(store) / RECORD).read_text()
    assert text.startswith('{\n "schema_version": 1,\n')
    assert RunId.model_validate(json.loads(text)["id"]).attempt == 1
