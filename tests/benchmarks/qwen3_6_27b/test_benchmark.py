from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from harness import benchmarks
from harness.benchmarks.base import Benchmark, Dataset, file_sha256, forget_run
from harness.benchmarks.qwen3_6_27b import tables
from harness.benchmarks.qwen3_6_27b.bfcl import standin
from harness.benchmarks.qwen3_6_27b.bfcl import table as questions
from harness.benchmarks.qwen3_6_27b.bfcl.environment import Environment
from harness.benchmarks.qwen3_6_27b.files import NAME
from harness.benchmarks.qwen3_6_27b.inline import Issued, scorable, score
from harness.benchmarks.qwen3_6_27b.salts import Salts
from harness.benchmarks.qwen3_6_27b.store import Library
from harness.benchmarks.scripts import ScriptedReplies
from harness.config.models import Agentic
from harness.engines.bodies import BodyStore
from harness.env import BFCL_PYTHON
from harness.errors import ConfigError, DatasetError, MissingError, UnknownName
from tests.benchmarks.qwen3_6_27b.bfcl.made import made_environment
from tests.benchmarks.qwen3_6_27b.made import PACK, RULES

KWARGS = {"thinking": False}
ROWS = 24


def asked(**said: Any) -> Benchmark:
    return benchmarks.get(NAME, PACK, Agentic(**{"repeats": 2, **said}))


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stand-ins: three trajectories, and two questions of each subset."""
    folder = tmp_path_factory.mktemp("data")
    asked().make_dataset(folder, seed=0, rows=3)
    standin.write(folder / NAME, RULES, seed=0, rows=ROWS)
    return folder


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return made_environment(tmp_path_factory.mktemp("bfcl") / "venv")


def bodies(dataset: Dataset) -> list[dict[str, Any]]:
    assert dataset.chats is not None
    store = BodyStore.open(dataset.chats)
    return [orjson.loads(store[row]) for row in range(len(store))]


def silent(_: str) -> None:
    pass


def test_what_each_leg_asks(data_dir: Path) -> None:
    benchmark = asked()
    assert (benchmark.name, benchmark.logged) == (NAME, "reply")
    for scenario in ("SingleStream", "Offline", "Server"):
        assert benchmark.table("performance", scenario) == "trajectories"
        assert benchmark.table("accuracy", scenario) == "bfcl"
    with pytest.raises(UnknownName, match="one of bfcl, trajectories"):
        benchmark.dataset(data_dir, "bfc")


def test_without_a_word_the_round_s_50_repeats_are_asked(data_dir: Path) -> None:
    found = benchmarks.get(NAME, PACK).dataset(data_dir, "trajectories")
    assert (found.rows, found.name, found.trajectories) == (150, f"{NAME}/trajectories", True)
    assert set(found.subsets) == {"coding"}
    assert (found.stand_in, found.whole, found.salt, found.chats) == (True, False, None, None)
    file = data_dir / NAME / RULES.performance_data.value.file
    assert [(each.path, each.sha256) for each in found.files] == [(file, file_sha256(file))]


def test_the_questions_are_rows_by_category(data_dir: Path) -> None:
    found = asked().dataset(data_dir, "bfcl")
    assert (found.rows, found.trajectories, found.stand_in, found.whole) == (ROWS, False, True, False)
    assert set(found.subsets) == set(RULES.accuracy_subsets.value)
    assert found.files[0].sha256 == file_sha256(data_dir / NAME / questions.NAME)


def test_a_stand_in_of_as_many_questions_as_the_round_s_is_whole(tmp_path: Path) -> None:
    asked().make_dataset(tmp_path, seed=0)
    found = asked().dataset(tmp_path, "bfcl")
    assert (found.rows, found.whole, found.stand_in) == (RULES.datasets["accuracy"].value, True, True)


def test_without_questions_they_are_made_of_their_package(
    tmp_path: Path, checker: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BFCL_PYTHON.name, str(tmp_path / "no python"))
    with pytest.raises(MissingError) as caught:
        asked().dataset(tmp_path, "bfcl")
    assert caught.value.exit_code == 3
    monkeypatch.setenv(BFCL_PYTHON.name, str(checker.python))
    assert asked().dataset(tmp_path, "bfcl").rows > 0
    assert (tmp_path / NAME / questions.NAME).is_file()


def test_the_chats_of_trajectories(data_dir: Path) -> None:
    benchmark = asked(chat_template_kwargs=KWARGS)
    made = benchmark.prepare(benchmark.dataset(data_dir, "trajectories"), data_dir, silent)
    library = tables.library_of(made, Agentic(repeats=2, chat_template_kwargs=KWARGS))
    assert made.chats is not None
    store = BodyStore.open(made.chats)
    assert (made.rows, library.rows, len(store)) == (6, 6, library.chats)
    for row in range(made.rows):
        assert store.rows_of(row) == library.turns(row)
        assert {store.session_name(chat) for chat in library.turns(row)} == {library.session_id(row)}
        assert store.delays_ns[list(library.turns(row))].tolist() == list(library.delays_ns(row))
    assert all(chat["chat_template_kwargs"] == KWARGS for chat in bodies(made))
    first, again = (bodies(made)[library.turns(row)[0]]["messages"] for row in (0, 3))
    assert first[0] != again[0]
    assert first[1:] == again[1:]
    assert made.prompt_tokens.tolist() == [0] * 6
    assert benchmark.prepare_run(made, data_dir, silent) is made


def test_no_more_repeats_are_made_than_a_short_run_asks(data_dir: Path) -> None:
    benchmark = asked(repeats=50)
    short = benchmark.prepare(benchmark.dataset(data_dir, "trajectories").head(4), data_dir, silent)
    library = tables.library_of(short, Agentic(repeats=50))
    assert (short.rows, short.whole, library.rows, len(bodies(short))) == (4, False, 6, library.chats)


def test_the_chats_of_questions(data_dir: Path) -> None:
    benchmark = asked(chat_template_kwargs=KWARGS)
    told: list[str] = []
    made = benchmark.prepare(benchmark.dataset(data_dir, "bfcl"), data_dir, told.append)
    assert len(bodies(made)) == made.rows
    assert all(chat["chat_template_kwargs"] == KWARGS and chat["tools"] for chat in bodies(made))
    assert made.prompt_tokens.tolist() == [0] * ROWS
    other = asked().prepare(asked().dataset(data_dir, "bfcl"), data_dir, silent)
    assert other.chats != made.chats
    assert not any("chat_template_kwargs" in chat for chat in bodies(other))
    head = benchmark.dataset(data_dir, "bfcl").head(5)
    assert bodies(benchmark.prepare(head, data_dir, silent)) == bodies(made)[:5]


def test_a_file_that_was_changed_since_it_was_read(data_dir: Path, tmp_path: Path) -> None:
    copied = tmp_path / "data"
    shutil.copytree(data_dir, copied)
    for table, file in (("trajectories", RULES.performance_data.value.file), ("bfcl", questions.NAME)):
        read = asked().dataset(copied, table)
        path = copied / NAME / file
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
        with pytest.raises(DatasetError, match="was changed since it was read"):
            asked(chat_template_kwargs={"never": "made"}).prepare(read, copied, silent)


def test_the_prompts_of_a_run_s_own(data_dir: Path, tmp_path: Path) -> None:
    benchmark, agentic = asked(salt="run"), Agentic(repeats=2, salt="run")
    shared = benchmark.prepare(benchmark.dataset(data_dir, "trajectories"), data_dir, silent)
    assert (shared.chats, shared.salt) == (None, None)
    runs = []
    for name in ("1", "2"):
        folder = tmp_path / name
        folder.mkdir()
        runs.append(benchmark.prepare_run(shared, folder, silent))
    one, two = runs
    assert one.salt is not None
    assert one.salt != two.salt
    assert tables.library_of(one, agentic).salts == Salts(one.salt)
    first, second = bodies(one), bodies(two)
    assert all(a["messages"][0] != b["messages"][0] for a, b in zip(first, second, strict=True))
    assert [a["messages"][1:] for a in first] == [b["messages"][1:] for b in second]
    forget_run(one, tmp_path / "1")
    assert list((tmp_path / "1").iterdir()) == []
    again = benchmark.prepare_run(replace(shared, salt=one.salt), tmp_path / "1", silent)
    assert bodies(again) == first


def test_questions_and_chats_of_all_runs_are_no_run_s_own(data_dir: Path, tmp_path: Path) -> None:
    benchmark = asked(salt="run")
    read = benchmark.prepare(benchmark.dataset(data_dir, "bfcl"), data_dir, silent)
    assert benchmark.prepare_run(read, tmp_path, silent) is read
    forget_run(read, tmp_path)
    assert read.chats is not None
    assert read.chats.is_file()
    forget_run(benchmark.dataset(data_dir, "trajectories"), tmp_path)


def test_a_place_that_cannot_be_written(data_dir: Path, tmp_path: Path) -> None:
    benchmark = asked(salt="run")
    with pytest.raises(MissingError, match="cannot write the requests"):
        benchmark.prepare_run(benchmark.dataset(data_dir, "trajectories"), tmp_path / "nowhere", silent)


def test_a_salt_where_nothing_is_salted(data_dir: Path) -> None:
    read = asked(salt=None).dataset(data_dir, "trajectories")
    assert tables.library_of(read, Agentic(salt=None)).salts is None
    with pytest.raises(ConfigError, match="has one"):
        tables.library_of(replace(read, salt=3), Agentic(salt=None))


def test_the_sampling_is_the_round_s_whatever_the_seed() -> None:
    benchmark = asked()
    found = benchmark.sampling("performance", seed=7)
    assert found == benchmark.sampling("accuracy", seed=8)
    params = RULES.endpoints_model_params
    assert params is not None
    assert params.value.required == {
        "temperature": found.temperature,
        "max_new_tokens": found.max_new_tokens,
        "seed": found.seed,
    }
    assert benchmark.sampling("accuracy", seed=7, max_new_tokens=32).max_new_tokens == 32


@pytest.mark.qwen3vl
def test_texts_in_the_vocabulary_of_stand_ins() -> None:
    assert asked().encode("ls -l") == [4730, 481, 75]


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ({}, ("salted prompts (upstream)",)),
        ({"salt": None}, ()),
        ({"salt": "run", "tool_delays": True}, ("salted prompts (run)", "each turn waits as long as its tool took")),
    ],
)
def test_what_departs_from_the_round_s_own_run(said: dict[str, Any], wanted: tuple[str, ...]) -> None:
    assert asked(**said).deviations("performance") == wanted
    assert asked(**said).deviations("accuracy") == ()


@pytest.mark.parametrize("table", ["trajectories", "bfcl"])
def test_the_warm_up_is_as_long_as_the_data_and_not_in_it(data_dir: Path, table: str) -> None:
    benchmark = asked(chat_template_kwargs=KWARGS)
    made = benchmark.prepare(benchmark.dataset(data_dir, table), data_dir, silent)
    chats = list(benchmark.warmup_prompts(40, like=made, seed=0))
    assert len(chats) == 40
    assert all(chat["tools"] and chat["chat_template_kwargs"] == KWARGS for chat in chats)
    there = [chat["messages"] for chat in bodies(made)]
    assert not any(chat["messages"] in there for chat in chats)
    ours, theirs = (np.array([len(orjson.dumps(c)) for c in some]) for some in (chats, bodies(made)))
    assert ours.max() < 1.2 * theirs.max() + 400
    assert 0.7 < ours.mean() / theirs.mean() < 1.5


def test_canaries_are_capped_by_the_round(data_dir: Path) -> None:
    (canary,) = asked(chat_template_kwargs=KWARGS).canaries(stand_in_checkpoint=False)
    assert canary.max_new_tokens == asked().sampling("accuracy", seed=0).max_new_tokens
    assert all(chat["chat_template_kwargs"] == KWARGS for chat in canary.prompts)


def test_stated_shares_of_the_questions_are_scored_so(
    tmp_path: Path, checker: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BFCL_PYTHON.name, str(checker.python))
    benchmark = asked()
    benchmark.make_dataset(tmp_path, seed=0)
    read = benchmark.dataset(tmp_path, "bfcl")
    shares = {"non_live": 0.5, "live": 0.25, "hallucination": 1.0}
    script = benchmark.scripted_answers(read, shares, seed=1, answer_tokens=8)
    assert isinstance(script, ScriptedReplies)
    found = benchmark.score(((row, script[row]) for row in range(len(script))), read)
    assert {each.name: each.correct for each in found.subsets} == {
        each.name: round(shares[each.name] * each.samples) for each in found.subsets
    }
    right = sum(each.correct for each in found.subsets)
    assert found.value == round(100 * right / read.rows, 2)
    assert {"normalized_single_turn_score", "non_live", "simple_java"} <= found.also.keys()
    assert f"'Total': {found.value}\n" in benchmark.accuracy_text(found)
    assert len(benchmark.ready_to_score(read)) == 1


def test_no_number_stands_for_a_part_of_the_questions(
    data_dir: Path, checker: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BFCL_PYTHON.name, str(checker.python))
    read = asked().dataset(data_dir, "bfcl").head(5)
    script = asked().scripted_answers(read, {}, seed=1, answer_tokens=8)
    assert isinstance(script, ScriptedReplies)
    found = asked().score(((row, script[row]) for row in range(5)), read, failed={0})
    assert (found.value, found.whole, found.samples, found.failed) == (None, False, 5, 1)


def test_without_the_checker_there_is_no_score(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BFCL_PYTHON.name, str(tmp_path / "no python"))
    assert asked().ready_to_score(asked().dataset(data_dir, "trajectories")) == ()
    read = asked().dataset(data_dir, "bfcl")
    for ask in (lambda: asked().score([], read), lambda: asked().ready_to_score(read)):
        with pytest.raises(MissingError) as caught:
            ask()
        assert caught.value.exit_code == 3


def inline(library: Library, script: ScriptedReplies) -> float | None:
    """The inline score of a script's replies to all turns."""
    issued = [
        Issued(library.trajectory(row), place, json.loads(script[chat]))
        for row in range(library.rows)
        for place, chat in enumerate(library.turns(row))
    ]
    return score(issued).score


@pytest.mark.parametrize(("shares", "wanted"), [({}, 1.0), ({"coding": 1.0}, 1.0), ({"coding": 0.0}, 0.0)])
def test_recorded_answers_are_scripted_by_chat(data_dir: Path, shares: dict[str, float], wanted: float) -> None:
    read = asked().dataset(data_dir, "trajectories")
    script = asked().scripted_answers(read, shares, seed=0, answer_tokens=8)
    assert isinstance(script, ScriptedReplies)
    library = tables.library_of(read, Agentic(repeats=2))
    assert len(script) == library.chats
    assert inline(library, script) == wanted
    assert max(script.tokens) < asked().sampling("performance", seed=0).max_new_tokens
    assert min(script.tokens) > 0


def test_a_stated_share_of_turns_is_right_in_each_repeat(data_dir: Path) -> None:
    read = asked().dataset(data_dir, "trajectories")
    script = asked().scripted_answers(read, {"coding": 0.5}, seed=0, answer_tokens=8)
    assert isinstance(script, ScriptedReplies)
    library = tables.library_of(read, Agentic(repeats=2))
    turns = sum(scorable(each, turn) for each in library.source.trajectories for turn in each.turns)
    assert inline(library, script) == round(0.5 * turns) / turns
    half = library.chats // 2
    assert [script[chat] for chat in range(half)] == [script[chat] for chat in range(half, library.chats)]
    with pytest.raises(UnknownName, match="unknown subset 'codin'"):
        asked().scripted_answers(read, {"codin": 0.5}, seed=0, answer_tokens=8)
