from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from harness.benchmarks.qwen3_6_27b import counting
from harness.benchmarks.qwen3_6_27b.counting import answer_text, prompt_tokens, text_tokens
from harness.benchmarks.qwen3_6_27b.dataset import read_file
from harness.benchmarks.qwen3_6_27b.standin import make_dataset
from harness.benchmarks.qwen3_6_27b.store import Library, build
from harness.engines.bodies import BodyStore
from harness.engines.chats import qwen3_vocab
from harness.engines.chats.tool_prompts import prompt_ids
from harness.errors import DatasetError, MissingError, RunBroke
from tests.benchmarks.qwen3_6_27b.made import RULES, call

pytestmark = pytest.mark.qwen3vl


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> BodyStore:
    folder = tmp_path_factory.mktemp("counted") / "x"
    make_dataset(folder, seed=0, rules=RULES, rows=3)
    library = Library(read_file(folder / RULES.performance_data.value.file), repeats=3)
    return build(library, folder / "x.chats", lambda _: None)


@pytest.fixture(scope="module")
def wanted(store: BodyStore) -> list[int]:
    return [len(prompt_ids(bytes(store[row]))) for row in range(len(store))]


@pytest.mark.parametrize("processes", [None, 1, 2, 3])
def test_prompts_are_counted_in_any_order_and_by_any_number_of_processes(
    store: BodyStore, wanted: list[int], processes: int | None
) -> None:
    rows = [*range(len(store)), *range(0, len(store), 3)]
    random.Random(0).shuffle(rows)
    found = prompt_tokens(store, rows, processes=processes)
    assert found.dtype == np.int64
    assert found.tolist() == [wanted[row] for row in rows]


def test_nothing_is_counted_where_nothing_is_asked(store: BodyStore) -> None:
    assert prompt_tokens(store, []).tolist() == []
    assert text_tokens([], processes=4).tolist() == []


def test_parts_are_of_one_size_and_keep_sessions_together(store: BodyStore) -> None:
    rows = np.arange(len(store))
    sizes = np.array([len(store[row]) for row in range(len(store))])
    parts = counting._parts(rows, store.sessions, sizes, 3)
    assert np.concatenate(parts).tolist() == rows.tolist()
    sessions = [set(store.sessions[part].tolist()) for part in parts]
    assert sum(map(len, sessions)) == len(set(store.sessions.tolist()))
    assert max(sizes[part].sum() for part in parts) < 0.6 * sizes.sum()


@pytest.mark.parametrize("processes", [1, 3])
def test_texts_are_counted(processes: int) -> None:
    texts = ["", "Grüße", "ls -l tides | head -5", *("x" * n for n in range(20))]
    wanted = [len(qwen3_vocab.encode(text)) for text in texts]
    assert text_tokens(texts, processes=processes).tolist() == wanted
    assert text_tokens(["\ud800"], processes=processes).tolist() == text_tokens(["?"]).tolist()


def test_what_of_a_reply_is_counted() -> None:
    reply = {"content": "So.", "reasoning": "Hm. ", "tool_calls": [call("ls"), call("pwd"), {"function": None}, 3]}
    assert answer_text(reply) == 'Hm. So.bash{"command": "ls"}bash{"command": "pwd"}'
    assert answer_text({"content": None}) == ""


@pytest.mark.parametrize("processes", [1, 2])
def test_a_chat_that_is_none(tmp_path: Path, processes: int) -> None:
    bodies = [{"messages": [{"role": "user", "content": "x"}]}, {"messages": [{"role": "stranger", "content": "x"}]}]
    broken = BodyStore.write(tmp_path / "x.chats", bodies)
    with pytest.raises(DatasetError, match="role 'stranger'") as caught:
        prompt_tokens(broken, [0, 1], processes=processes)
    assert str(caught.value.where).endswith("x.chats, row 1")


@pytest.mark.parametrize("processes", [1, 2])
def test_a_checkpoint_without_a_tokenizer(store: BodyStore, tmp_path: Path, processes: int) -> None:
    with pytest.raises(MissingError, match="no tokenizer that tokens can be counted with"):
        prompt_tokens(store, range(len(store)), tmp_path, processes)


def test_a_process_that_dies(store: BodyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_MODULE", "harness.no_such_module")
    with pytest.raises(RunBroke, match="a process that counts tokens ended with 1"):
        prompt_tokens(store, range(len(store)), processes=2)


def test_processes_are_as_many_as_the_work_is_worth() -> None:
    assert counting._processes(0) == counting._processes(counting.BYTES_A_PROCESS) == 1
    assert counting._processes(1 << 40) >= 1
