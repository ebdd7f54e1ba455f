from __future__ import annotations

from pathlib import Path

from harness.clients.loadgen.job import OUTCOME, Outcome
from harness.events import Event, Note
from harness.ledger import ResultsStore, State, read_record, write_record
from harness.ledger.record import Counts, ProbeEcho
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


def test_of_runs_killed_before_they_were_judged_all_but_probes_are_judged_later(tmp_path: Path) -> None:
    """Nothing judges a probe: the next search makes it again."""
    store = ResultsStore(tmp_path)
    counts = Counts(issued=4, answered=4, failed=0, outstanding=0, output_tokens=16)
    outcome = Outcome(counts=counts, failures=[], error=None, exit_code=0, library_rows=4, loaded_rows=4)
    folders = {}
    for leg in ("performance", "probe"):
        run_id, folders[leg] = store.new_attempt("BOX", "gpt-oss-120b", "Server", leg)
        probe = ProbeEcho(search="01", number=1, rate=5.0, purpose="first guess") if leg == "probe" else None
        write_record(folders[leg], record(run_id, probe=probe))
        (folders[leg] / OUTCOME).write_text(outcome.model_dump_json())
    told: list[Event] = []
    end_dead_runs(store, told.append)
    assert {leg: read_record(folder / "run.json").state for leg, folder in folders.items()} == {
        "performance": State.MEASURED,
        "probe": State.INTERRUPTED,
    }
    assert read_record(folders["probe"] / "run.json").counts == counts
    said = {event.text for event in told if isinstance(event, Note)}
    assert said == {
        "BOX/gpt-oss-120b/Server/performance#1 was killed before it was judged: --resume judges it",
        "BOX/gpt-oss-120b/Server/probe#1 was killed: it is marked as interrupted",
    }
