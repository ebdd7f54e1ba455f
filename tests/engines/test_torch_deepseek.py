"""DeepSeek-V3 in the torch engine against transformers' own ``generate``, turn after turn and all at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.engines.base import (
    Failure,
    Finish,
    PromptTable,
    Replies,
    Requests,
    Sampling,
    TokenEvents,
    Tokens,
    Workload,
)
from harness.engines.bodies import NO_SESSION, BodyStore, chat_as_prompt
from harness.engines.chats import qwen3_vocab
from harness.engines.chats.tool_prompts import prompt_ids
from harness.engines.torch_cpu import TorchCore, TorchSettings
from harness.errors import ConfigError
from tests.engines.test_torch_cpu import Heard, submit, workload

pytestmark = [pytest.mark.torch, pytest.mark.qwen3vl, pytest.mark.usefixtures("one_thread")]

ROOM = 640
CAP = 5
Chat = dict[str, Any]
Generate = Callable[[Sequence[int], int], list[int]]


@pytest.fixture(scope="module")
def make_core(tiny_deepseek_v3: Path) -> Callable[..., TorchCore]:
    def make(**settings: Any) -> TorchCore:
        return TorchCore(TorchSettings(tiny_deepseek_v3, **({"slots": 3, "max_total_tokens": ROOM} | settings)))

    return make


@pytest.fixture(scope="module")
def core(make_core: Callable[..., TorchCore]) -> TorchCore:
    """One core that the tests share. A step reads 48 tokens of prompts."""
    return make_core(prefill_chunk=48)


@pytest.fixture(scope="module")
def generate(tiny_deepseek_v3: Path) -> Generate:
    """What transformers' ``generate`` answers to one prompt, alone and unpadded."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(tiny_deepseek_v3, dtype=torch.float32).eval()

    def answer(prompt: Sequence[int], count: int) -> list[int]:
        ids = torch.tensor([list(prompt)])
        output = model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, top_p=1, max_new_tokens=count
        )
        found: list[int] = output[0, len(prompt) :].tolist()
        return found

    return answer


def some_prompts(lengths: Sequence[int], seed: int = 0) -> list[list[int]]:
    chosen = np.random.default_rng(seed)
    return [chosen.integers(0, qwen3_vocab.END_OF_TEXT, length).tolist() for length in lengths]


def test_greedy_answers_equal_generate_id_by_id(core: TorchCore, generate: Generate) -> None:
    # More requests than slots; prompts of one piece and of several.
    core.cancel()
    prompts = some_prompts((33, 97, 200, 1, 48, 2, 300))
    submit(core, prompts, workload(16))
    heard = Heard().drain(core)
    assert not heard.failures
    assert [heard.answers[number] for number in range(len(prompts))] == [generate(prompt, 16) for prompt in prompts]


def test_long_prompts_that_decode_one_by_one_are_answered_the_same(
    make_core: Callable[..., TorchCore], generate: Generate
) -> None:
    core = make_core(max_total_tokens=1200, prefill_chunk=256)
    prompts = some_prompts((1090, 20, 1020), seed=4)
    submit(core, prompts, workload(8))
    heard = Heard().drain(core)
    assert [heard.answers[number] for number in range(3)] == [generate(prompt, 8) for prompt in prompts]


def test_in_bfloat16_it_answers(make_core: Callable[..., TorchCore]) -> None:
    core = make_core(dtype="bfloat16")
    submit(core, some_prompts((60, 7)), workload(4))
    assert [len(answer) for answer in Heard().drain(core).answers.values()] == [4, 4]


@dataclass
class Turns:
    """Chats of some trajectories, written to a store in order of trajectory and turn."""

    chats: list[Chat] = field(default_factory=list)
    sessions: list[int] = field(default_factory=list)

    def add(self, session: int, chat: Chat) -> int:
        self.chats.append(chat)
        self.sessions.append(session)
        return len(self.chats) - 1

    def write(self, folder: Path) -> str:
        return str(BodyStore.write(folder / "turns.chats", self.chats, self.sessions).path)


@dataclass
class Asked:
    """Requests of a store, one at a time or many, and the replies to them by number."""

    core: TorchCore
    store: str
    replies: dict[int, dict[str, Any]] = field(default_factory=dict)
    counts: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    finish: dict[int, int] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    steps: int = 0

    def submit(self, number: int, row: int, cap: int = CAP) -> None:
        load = Workload("test", Sampling(0.0, 1.0, 0, cap, (), 0), TokenEvents.NONE, bodies=self.store)
        self.core.submit(Requests(load, [number], [row], PromptTable.empty(1), [0]))

    def step(self) -> None:
        self.steps += 1
        for event in self.core.step():
            if isinstance(event, Failure):
                self.failures[event.number] = event.kind
                continue
            assert isinstance(event, Replies)
            start = 0
            for place, (number, end) in enumerate(zip(event.numbers, event.ends, strict=True)):
                self.replies[number] = json.loads(bytes(event.data[start:end]))
                self.counts[number] = (event.prompt_tokens[place], event.cached_tokens[place], event.tokens[place])
                self.finish[number] = event.finish[place]
                start = end

    def drain(self) -> None:
        while self.core.wait_s() is not None:
            self.step()
            assert self.steps < 5_000

    def ask(self, row: int) -> tuple[int, int, int]:
        """One chat to its end; the tokens of its prompt, of those the cached ones, and of its answer."""
        self.submit(row, row)
        self.drain()
        return self.counts[row]


def trajectory(session: int, turns: int, seed: int = 0, words: int = 12) -> list[Chat]:
    """The chats of an agent that calls a tool at every turn."""
    chosen = np.random.default_rng((seed, session))

    def text() -> str:
        return " ".join(f"{word:x}" for word in chosen.integers(0, 4096, int(chosen.integers(1, words))))

    messages: list[Chat] = [{"role": "system", "content": "You drive a shell."}, {"role": "user", "content": text()}]
    chats: list[Chat] = []
    for turn in range(turns):
        chats.append({"messages": list(messages)})
        call = {"id": f"c{turn}", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
        messages.append({"role": "assistant", "reasoning_content": text(), "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": text()})
    return chats


def expected(generate: Generate, chat: Chat, cap: int = CAP) -> dict[str, str]:
    return {"content": qwen3_vocab.decode(generate(prompt_ids(chat), cap))}


def common(before: Sequence[int], now: Sequence[int]) -> int:
    return next((at for at, (old, new) in enumerate(zip(before, now, strict=False)) if old != new), len(before))


def test_a_turn_computes_what_goes_beyond_the_turn_before(core: TorchCore, generate: Generate, tmp_path: Path) -> None:
    core.cancel()
    turns, chats = Turns(), trajectory(0, 5)
    for chat in chats:
        turns.add(7, chat)
    asked, before = Asked(core, turns.write(tmp_path)), core.counters()
    lengths = [len(prompt_ids(chat)) for chat in chats]
    for row, chat in enumerate(chats):
        prompt, cached, answered = asked.ask(row)
        assert (prompt, answered) == (lengths[row], CAP)
        # The recorded answer begins as every answer does, and then goes another way than this model's.
        assert cached == (lengths[row - 1] if row else 0)
        assert asked.replies[row] == expected(generate, chat)
        assert asked.finish[row] == Finish.LENGTH
    counted = {name: value - before[name] for name, value in core.counters().items()}
    assert counted == {
        "prompt_tokens": sum(lengths),
        "cached_tokens": sum(cached for _, cached, _ in asked.counts.values()),
    }
    assert counted["prompt_tokens"] - counted["cached_tokens"] == lengths[-1]


def test_sessions_with_the_same_chat_share_nothing(core: TorchCore, tmp_path: Path) -> None:
    core.cancel()
    turns, (first, second) = Turns(), trajectory(0, 2)
    for session in (1, 2, NO_SESSION, NO_SESSION):
        turns.add(session, first)
        turns.add(session, second)
    asked = Asked(core, turns.write(tmp_path))
    cached = [asked.ask(row)[1] for row in range(8)]
    assert [bool(each) for each in cached] == [False, True, False, True, False, False, False, False]


def test_a_trajectory_that_is_begun_again_begins_with_nothing(core: TorchCore, tmp_path: Path) -> None:
    core.cancel()
    turns = Turns()
    for chat in trajectory(0, 3):
        turns.add(1, chat)
    asked = Asked(core, turns.write(tmp_path))
    first = [asked.ask(row) for row in range(3)]
    assert [asked.ask(row) for row in range(3)] == first
    assert [cached > 0 for _, cached, _ in first] == [False, True, True]
    core.cancel()
    assert asked.ask(2)[1] == 0


def test_a_trajectory_that_is_issued_twice_at_once_has_two_caches(core: TorchCore, tmp_path: Path) -> None:
    core.cancel()
    turns, chats = Turns(), trajectory(0, 4)
    for chat in chats:
        turns.add(1, chat)
    asked, lengths = Asked(core, turns.write(tmp_path)), [len(prompt_ids(chat)) for chat in chats]
    cached = {}
    for number, row in enumerate((0, 1, 0, 2, 1, 2, 3, 3)):
        asked.submit(number, row)
        asked.drain()
        cached[number] = asked.counts[number][1]
    assert cached == {number: lengths[row - 1] if row else 0 for number, row in enumerate((0, 1, 0, 2, 1, 2, 3, 3))}


@pytest.mark.parametrize(("slots", "chunk"), [(1, 33), (2, 64), (4, 1000)])
def test_any_turns_of_many_sessions_are_answered_as_from_a_fresh_cache(
    make_core: Callable[..., TorchCore], generate: Generate, tmp_path: Path, slots: int, chunk: int
) -> None:
    chosen = np.random.default_rng(slots)
    core, turns = make_core(slots=slots, prefill_chunk=chunk), Turns()
    for session in range(4):
        chats = trajectory(session, 4, seed=slots)
        # Of one turn an early message is another, so that its prompt leaves what is cached in the middle.
        chats[2]["messages"][3] = {"role": "tool", "content": f"no, {session}"}
        for chat in chats:
            turns.add(session, chat)
    asked = Asked(core, turns.write(tmp_path))
    at, dropped = [0] * 4, set[int]()
    while min(at) < 4:
        session = int(chosen.choice([each for each in range(4) if at[each] < 4]))
        row = session * 4 + at[session]
        waits_for = row - 1 if at[session] else None
        if waits_for is None or waits_for in asked.replies or waits_for in dropped:
            asked.submit(row, row)
            at[session] += 1
            if chosen.random() < 0.2:
                asked.step()
                if row not in asked.replies:
                    core.drop([row])
                    dropped.add(row)
        asked.step()
    asked.drain()
    assert not asked.failures
    assert asked.replies.keys() | dropped == set(range(16))
    for row, reply in asked.replies.items():
        assert reply == expected(generate, turns.chats[row]), f"row {row}"
    # One slot goes from session to session, and holds nothing of any when its turn comes again.
    assert any(cached for _, cached, _ in asked.counts.values()) == (slots > 1)


def test_chats_that_are_prompts_say_their_session_and_are_answered_by_replies(
    core: TorchCore, generate: Generate
) -> None:
    core.cancel()
    first, second = trajectory(0, 2)
    shared = common(prompt_ids(first), prompt_ids(second))
    for number, (chat, cached) in enumerate(((first, 0), (second, shared), (second, 0))):
        body = json.dumps(chat | ({"session": "s"} if number < 2 else {})).encode()
        load = Workload("test", Sampling(0.0, 1.0, 0, CAP, (), 0), TokenEvents.ALL, chat_prompts=True)
        core.submit(Requests(load, [number], [0], PromptTable.from_lists([chat_as_prompt(body).tolist()]), [0]))
        tokens: list[int] = []
        while core.wait_s() is not None:
            for event in core.step():
                if isinstance(event, Tokens):
                    tokens += event.tokens.tolist()
                else:
                    assert isinstance(event, Replies)
                    assert json.loads(bytes(event.data)) == {"content": qwen3_vocab.decode(tokens)}
                    assert (event.numbers, event.tokens, event.cached_tokens) == ([number], [CAP], [cached])
        assert tokens == generate(prompt_ids(chat), CAP)


def test_chats_that_cannot_be_served_fail(core: TorchCore, tmp_path: Path) -> None:
    core.cancel()
    turns = Turns()
    turns.add(0, {"messages": [{"role": "robot", "content": "x"}]})
    turns.add(0, {"messages": [{"role": "user", "content": "x " * ROOM}]})
    turns.add(0, {"messages": [{"role": "user", "content": "x"}]})
    asked = Asked(core, turns.write(tmp_path))
    for number, row in enumerate((0, 1, 9, 2)):
        asked.submit(number, row)
    asked.drain()
    assert asked.failures == {0: "bad_chat", 1: "prompt_too_long", 2: "bad_row"}
    assert asked.replies.keys() == {3}
    absent = Asked(core, str(tmp_path / "absent.chats"))
    absent.submit(0, 0)
    absent.drain()
    assert absent.failures == {0: "no_chats"}


def test_another_vocabulary_is_refused(tiny_deepseek_v3: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    for path in tiny_deepseek_v3.iterdir():
        if path.name not in ("config.json", "model.safetensors"):
            (tmp_path / path.name).symlink_to(path)
    config = json.loads((tiny_deepseek_v3 / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"vocab_size": 1000, "pad_token_id": 0}))
    weights: dict[str, torch.Tensor] = load_file(tiny_deepseek_v3 / "model.safetensors")
    for name in ("lm_head.weight", "model.embed_tokens.weight"):
        weights[name] = weights[name][:1000].clone()
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(ConfigError, match="a vocabulary of 1000"):
        TorchCore(TorchSettings(tmp_path))
