from __future__ import annotations

from pathlib import Path

from harness.events import Event
from harness.ledger import ResultsStore, State, read_record, write_record
from harness.runs.endings import end_dead_runs
from tests.ledger.made_records import add, record


def test_a_run_that_was_killed_is_marked_and_finished_ones_are_left_alone(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path)
    run_id, dead = store.new_attempt("BOX", "gpt-oss-120b", "Offline", "performance")
    write_record(dead, record(run_id))
    for left in ("requests.chats", "requests.chats.part"):  # prompts of the run's own, which nobody lived to remove
        (dead / left).write_bytes(b"x")
    done = add(store, "Offline", "accuracy")
    before = (done / "run.json").read_bytes()
    told: list[Event] = []
    end_dead_runs(store, told.append)
    ended = read_record(dead / "run.json")
    assert ended.state is State.INTERRUPTED
    assert ended.note == "the harness was killed"
    assert ended.ended_at is not None
    assert (done / "run.json").read_bytes() == before
    assert [path.name for path in dead.iterdir()] == ["run.json"]
    assert len(told) == 1
    end_dead_runs(store, told.append)
    assert len(told) == 1
