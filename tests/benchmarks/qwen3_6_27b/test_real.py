"""The round's own trajectories: what is asked of them is, byte for byte, what the mlcommons client asks.

The hashes of requests were taken from that client (mlcommons/endpoints ea332753, its own loader and writer, with the
settings of :data:`RUN`), and so were the scores of answers that never change.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import orjson
import pytest

from harness.benchmarks.qwen3_6_27b import fetch
from harness.benchmarks.qwen3_6_27b.benchmark import bind
from harness.benchmarks.qwen3_6_27b.dataset import TrajectorySet, read
from harness.benchmarks.qwen3_6_27b.files import NAME
from harness.benchmarks.qwen3_6_27b.inline import Issued, scorable, score
from harness.benchmarks.qwen3_6_27b.requests import request
from harness.benchmarks.qwen3_6_27b.salts import Salts
from harness.benchmarks.qwen3_6_27b.store import Library, build
from harness.benchmarks.scripts import ScriptedReplies
from harness.engines.bodies import BodyStore
from tests.benchmarks.qwen3_6_27b.made import PACK, REAL, RULES, asked_by_run, call, needs_real

pytestmark = [pytest.mark.shared, needs_real]

RUN = asked_by_run("m")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> TrajectorySet:
    folder = tmp_path_factory.mktemp("data")
    fetch.adopt(REAL, folder, RULES.performance_data.value)
    return read(folder, RULES)


def test_what_is_in_it(real: TrajectorySet) -> None:
    wanted = RULES.performance_data.value
    assert (len(real.trajectories), real.turns) == (wanted.trajectories, wanted.turns)
    assert (real.stand_in, real.whole, real.unread) == (False, True, ())
    turns = [turn for each in real.trajectories for turn in each.turns]
    assert all(turn.recorded is not None for turn in turns)
    assert len({each.system for each in real.trajectories}) == 1
    assert sum(len(turn.said) > 1 for turn in turns) == 5
    assert round(sum(turn.delay_ns for turn in turns) / 1e9, 3) == 636.393
    assert not {name for turn in turns for name in turn.asked} - {"tools"}


@pytest.mark.parametrize(
    ("repeat", "digest"),
    [
        (None, "4d96351f50ac00c7d581aa888c3d32313315b720fadf584525db6ee6240d4889"),
        (2, "1603ce2f1dc4df355d9b176c361ac3baecad184853bd9cc73ad4a61d4d40824c"),
    ],
)
def test_the_requests_are_the_client_s(real: TrajectorySet, repeat: int | None, digest: str) -> None:
    """SHA-256 over those of all 1007 requests in order, in hexadecimal; plain, and salted as in the second pass."""
    found = hashlib.sha256()
    for trajectory in real.trajectories:
        system = None if repeat is None else Salts().salted(trajectory, repeat)
        for place in range(len(trajectory.turns)):
            asked = orjson.dumps(request(trajectory, place, RUN, system))
            found.update(hashlib.sha256(asked).hexdigest().encode())
    assert found.hexdigest() == digest


def test_the_library_holds_the_same_chats(real: TrajectorySet, tmp_path: Path) -> None:
    library = Library(real, repeats=2)
    made = build(library, tmp_path / "x.chats", lambda _: None)
    assert len(made) == 2014
    for row in (0, 19, 20, 39):
        trajectory = library.trajectory(row)
        system = Salts().salted(trajectory, library.repeat(row))
        for place, chat in enumerate(library.turns(row)):
            whole = request(trajectory, place, RUN, system)
            assert bytes(made[chat]) == orjson.dumps({k: v for k, v in whole.items() if k not in RUN})


def everywhere(real: TrajectorySet, script: str | None) -> list[Issued]:
    """The same answer to every turn, or to each the recorded one."""
    answer = None if script is None else {"tool_calls": [call(script)]}
    return [
        Issued(each, place, answer or turn.recorded)
        for each in real.trajectories
        for place, turn in enumerate(each.turns)
    ]


def test_one_turn_has_nothing_to_compare(real: TrajectorySet) -> None:
    left = [(each.id, turn.number) for each in real.trajectories for turn in each.turns if not scorable(each, turn)]
    assert left == [("astropy__astropy-12907", 17)]


@pytest.mark.parametrize(
    ("script", "wanted"), [(None, 1.0), ("python x.py", 0.2625), ("sed x", 0.2136), ("grep x", 0.156)]
)
def test_the_scores_of_answers_that_never_change(real: TrajectorySet, script: str | None, wanted: float) -> None:
    found = score(everywhere(real, script))
    assert (found.issued, found.scored, found.missing) == (1007, RULES.performance_data.value.scorable_turns, 0)
    assert found.score is not None
    assert (found.score if script is None else round(found.score, 4)) == wanted


def test_the_benchmark_of_it(real: TrajectorySet, tmp_path: Path) -> None:
    """All 50 repeats are rows; a short run makes no more of them than it asks, and recorded answers score 1."""
    folder = tmp_path / NAME
    folder.mkdir()
    (folder / real.file.path.name).symlink_to(real.file.path)
    benchmark = bind(PACK)
    rows = benchmark.dataset(tmp_path, "trajectories")
    assert (rows.rows, rows.whole, rows.stand_in) == (1000, True, False)
    short = benchmark.prepare(rows.head(20), tmp_path, lambda _: None)
    assert short.chats is not None
    assert len(BodyStore.open(short.chats)) == real.turns
    script = benchmark.scripted_answers(short, {}, seed=0, answer_tokens=8)
    assert isinstance(script, ScriptedReplies)
    answers = iter(range(len(script)))
    found = score(
        Issued(each, place, orjson.loads(script[next(answers)]))
        for each in real.trajectories
        for place in range(len(each.turns))
    )
    assert (found.score, found.issued, found.missing) == (1.0, real.turns, 0)
    chats = list(benchmark.warmup_prompts(8, like=short, seed=0))
    assert max(len(orjson.dumps(chat)) for chat in chats) < 125_000
