"""The torch engine against transformers' own ``generate``, and how requests join, leave, stop and fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.engines.base import (
    Answers,
    EngineCore,
    Failure,
    Finish,
    PromptTable,
    Requests,
    Sampling,
    TokenEvents,
    Tokens,
    Workload,
)
from harness.engines.checkpoint import STAND_IN, describe
from harness.engines.torch_cpu import TorchCore, TorchSettings
from harness.errors import ConfigError, HarnessError, MissingError, UnknownName

pytestmark = pytest.mark.torch

VOCABULARY = 201_088
Greedy = Callable[[Sequence[int], int], list[int]]


def workload(
    cap: int,
    *,
    temperature: float = 0.0,
    stop: tuple[int, ...] = (),
    events: TokenEvents = TokenEvents.NONE,
    seed: int = 0,
) -> Workload:
    return Workload("test", Sampling(temperature, 1.0, 0, cap, stop, seed), events)


def submit(core: EngineCore, prompts: Sequence[Sequence[int]], load: Workload, first: int = 0) -> None:
    n = len(prompts)
    core.submit(Requests(load, range(first, first + n), range(n), PromptTable.from_lists(prompts), range(n)))


@dataclass
class Heard:
    """Everything a core told."""

    answers: dict[int, list[int]] = field(default_factory=dict)
    finish: dict[int, int] = field(default_factory=dict)
    times: dict[int, tuple[int, int]] = field(default_factory=dict)
    tokens: dict[int, list[int]] = field(default_factory=dict)
    failures: dict[int, Failure] = field(default_factory=dict)
    steps: int = 0

    def step(self, core: EngineCore) -> None:
        self.steps += 1
        for event in core.step():
            if isinstance(event, Failure):
                assert event.number not in self.failures
                self.failures[event.number] = event
            elif isinstance(event, Tokens):
                for number, position, token in zip(event.numbers, event.positions, event.tokens.tolist(), strict=True):
                    assert position == len(self.tokens.setdefault(number, []))
                    self.tokens[number].append(token)
            else:
                self._answers(event)

    def _answers(self, event: Answers) -> None:
        assert event.tokens.dtype == np.int32
        start = 0
        for i, number in enumerate(event.numbers):
            assert number not in self.answers
            self.answers[number] = event.tokens[start : event.ends[i]].tolist()
            self.finish[number] = event.finish[i]
            self.times[number] = (event.first_ns[i], event.done_ns[i])
            start = event.ends[i]
        assert start == len(event.tokens)

    def drain(self, core: EngineCore) -> Heard:
        while core.wait_s() is not None:
            self.step(core)
            assert self.steps < 5_000
        return self


def some_prompts(lengths: Iterable[int], seed: int = 0) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 199_998, length).tolist() for length in lengths]


@pytest.fixture(scope="module")
def make_core(tiny_gpt_oss: Path) -> Callable[..., TorchCore]:
    def make(**settings: Any) -> TorchCore:
        return TorchCore(TorchSettings(tiny_gpt_oss, **settings))

    return make


@pytest.fixture(scope="module")
def core(make_core: Callable[..., TorchCore]) -> TorchCore:
    """One core that the tests share; each leaves it idle. A step reads 48 tokens of prompts."""
    return make_core(slots=4, prefill_chunk=48)


@pytest.fixture(autouse=True)
def no_left_overs(core: TorchCore, one_thread: None) -> None:
    core.cancel()


@pytest.fixture(scope="module")
def greedy(tiny_gpt_oss: Path) -> Greedy:
    """What transformers' ``generate`` answers to one prompt, alone and unpadded."""
    import torch
    from transformers import AutoModelForCausalLM, GenerationConfig

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(tiny_gpt_oss, dtype=torch.float32).eval()

    def generate(prompt: Sequence[int], count: int) -> list[int]:
        ids = torch.tensor([list(prompt)])
        config = GenerationConfig(max_new_tokens=count, do_sample=False, pad_token_id=199_999)
        output = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)
        found: list[int] = output[0, len(prompt) :].tolist()
        return found

    return generate


def test_greedy_answers_equal_generate_id_by_id(core: TorchCore, greedy: Greedy) -> None:
    # More requests than slots; prompts of one piece and of several, inside and beyond the window of 128;
    # 120 + 24 crosses the window while answering.
    lengths = (33, 97, 200, 1, 48, 128, 120, 2, 300)
    prompts = some_prompts(lengths)
    submit(core, prompts, workload(24))
    heard = Heard().drain(core)
    assert not heard.failures
    for number, prompt in enumerate(prompts):
        assert heard.answers[number] == greedy(prompt, 24), f"prompt of {len(prompt)} tokens"
    assert set(heard.finish.values()) == {Finish.LENGTH}


def test_slots_that_decode_one_by_one_answer_the_same(
    core: TorchCore, greedy: Greedy, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As where they hold much: with sinks, and with windows that an answer leaves and that a prompt left.
    monkeypatch.setattr("harness.engines.torch_attention._LONG", 90)
    prompts = some_prompts((120, 30, 200, 60))
    submit(core, prompts, workload(16))
    heard = Heard().drain(core)
    assert [heard.answers[number] for number in range(4)] == [greedy(prompt, 16) for prompt in prompts]


def test_requests_that_join_late_change_nothing(core: TorchCore, greedy: Greedy) -> None:
    early, late = some_prompts((150, 20), seed=1), some_prompts((130, 10), seed=2)
    heard = Heard()
    submit(core, early, workload(20))
    for _ in range(8):
        heard.step(core)
    submit(core, late, workload(12), first=2)
    heard.drain(core)
    for number, (prompt, count) in enumerate(zip(early + late, (20, 20, 12, 12), strict=True)):
        assert heard.answers[number] == greedy(prompt, count)


def test_answers_under_way_go_on_while_a_long_prompt_is_read(core: TorchCore) -> None:
    short, long = some_prompts((8, 400))
    submit(core, [short], workload(30, events=TokenEvents.ALL))
    heard = Heard()
    heard.step(core)
    submit(core, [long], workload(4, events=TokenEvents.ALL), first=1)
    while 1 not in heard.tokens:
        before = len(heard.tokens[0])
        heard.step(core)
        assert len(heard.tokens[0]) == before + 1
    assert heard.steps == 1 + -(-400 // 48)


def test_several_short_prompts_are_read_in_one_step(core: TorchCore) -> None:
    submit(core, some_prompts((10, 10, 10)), workload(5, events=TokenEvents.FIRST))
    heard = Heard()
    heard.step(core)
    assert set(heard.tokens) == {0, 1, 2}


def test_a_stop_token_ends_the_answer_and_is_not_part_of_it(core: TorchCore, greedy: Greedy) -> None:
    prompt = some_prompts((40,))[0]
    whole = greedy(prompt, 12)
    place = whole.index(whole[6])
    submit(core, [prompt], workload(12, stop=(5, whole[6]), events=TokenEvents.ALL))
    heard = Heard().drain(core)
    assert heard.answers[0] == heard.tokens[0] == whole[:place]
    assert heard.finish[0] == Finish.STOP


def test_an_answer_may_have_no_tokens(core: TorchCore, greedy: Greedy) -> None:
    prompt = some_prompts((40,))[0]
    submit(core, [prompt], workload(12, stop=(greedy(prompt, 1)[0],), events=TokenEvents.ALL))
    heard = Heard().drain(core)
    assert heard.answers == {0: []}
    assert heard.finish[0] == Finish.STOP
    assert not heard.tokens
    first_ns, done_ns = heard.times[0]
    assert 0 < first_ns == done_ns


def test_each_workload_hears_the_tokens_it_asked_for(core: TorchCore) -> None:
    prompts = some_prompts((10, 12, 14))
    for number, events in enumerate(TokenEvents):
        submit(core, [prompts[number]], workload(6, events=events), first=number)
    heard = Heard().drain(core)
    assert {number: len(tokens) for number, tokens in heard.tokens.items()} == {1: 1, 2: 6}
    assert heard.tokens[1] == heard.answers[1][:1]
    assert heard.tokens[2] == heard.answers[2]


def test_times_are_those_of_the_tokens(core: TorchCore) -> None:
    begun_ns = time.monotonic_ns()
    submit(core, some_prompts((100,)), workload(10))
    heard = Heard().drain(core)
    first_ns, done_ns = heard.times[0]
    assert begun_ns < first_ns < done_ns <= time.monotonic_ns()


def test_samplings_mix_in_one_batch(core: TorchCore, greedy: Greedy) -> None:
    prompts = some_prompts((30, 30, 30))
    submit(core, prompts[:1], workload(8))
    submit(core, prompts[1:2], workload(16, temperature=1.0, seed=3), first=1)
    submit(core, prompts[2:], Workload("x", Sampling(0.7, 0.9, 50, 8, (), 4), TokenEvents.NONE), first=2)
    heard = Heard().drain(core)
    assert heard.answers[0] == greedy(prompts[0], 8)
    assert [len(heard.answers[number]) for number in range(3)] == [8, 16, 8]
    # A model of random weights is all but indifferent: 16 tokens of 201,088 repeat with a chance of 0.06 %.
    assert len(set(heard.answers[1])) == 16


def test_a_seed_fixes_the_answers(core: TorchCore) -> None:
    prompts, told = some_prompts((30, 60)), []
    for seed in (3, 3, 4):
        core.cancel()
        submit(core, prompts, workload(8, temperature=1.0, seed=seed))
        told.append(Heard().drain(core).answers)
    assert told[0] == told[1] != told[2]


def test_many_more_requests_than_slots_are_all_answered(core: TorchCore) -> None:
    count = 150
    submit(core, some_prompts([4] * count), workload(2))
    heard = Heard().drain(core)
    assert not heard.failures
    assert sorted(heard.answers) == list(range(count))


def test_requests_that_cannot_be_served_fail_and_the_others_do_not(core: TorchCore) -> None:
    good = some_prompts((20,))[0]
    bad = [[1] * 510, [5, VOCABULARY], [5, -1], []]
    submit(core, [good, *bad, good], workload(3))
    heard = Heard().drain(core)
    assert sorted(heard.answers) == [0, 5]
    assert heard.answers[0] == heard.answers[5]
    kinds = [heard.failures[number].kind for number in range(1, 5)]
    assert kinds == ["prompt_too_long", "bad_token", "bad_token", "empty_prompt"]
    assert "510 tokens and a cap of 3 exceed the engine's 512" in heard.failures[1].message


def test_the_longest_request_that_fits_is_served(core: TorchCore, greedy: Greedy) -> None:
    prompt = some_prompts((508,))[0]
    submit(core, [prompt], workload(4))
    assert Heard().drain(core).answers[0] == greedy(prompt, 4)


def test_cancelled_requests_are_never_told_of(core: TorchCore, greedy: Greedy) -> None:
    prompts = some_prompts([60] * 7)
    submit(core, prompts, workload(8, events=TokenEvents.ALL))
    for _ in range(4):
        core.step()
    core.cancel()
    assert core.wait_s() is None
    assert core.step() == []
    submit(core, prompts[:1], workload(8), first=99)
    heard = Heard().drain(core)
    assert heard.answers == {99: greedy(prompts[0], 8)}


def test_info_says_what_is_there(core: TorchCore, tiny_gpt_oss: Path) -> None:
    import torch
    import transformers

    info = core.info()
    assert (info.kind, info.vocab_size, info.slots, info.max_total_tokens) == ("torch", VOCABULARY, 4, 512)
    assert info.versions == {"torch": torch.__version__, "transformers": transformers.__version__}
    assert info.settings == {"threads": 1, "dtype": "float32", "prefill_chunk": 48}
    assert info.checkpoint == describe(tiny_gpt_oss)
    assert info.not_submittable == ("stand-in checkpoint",)


@pytest.fixture
def unmarked(tiny_gpt_oss: Path, tmp_path: Path) -> Path:
    """The tiny checkpoint without the file that marks it as a stand-in."""
    for path in tiny_gpt_oss.iterdir():
        if path.name != STAND_IN:
            (tmp_path / path.name).symlink_to(path)
    return tmp_path


def test_another_dtype_and_a_checkpoint_that_is_no_stand_in(unmarked: Path) -> None:
    core = TorchCore(TorchSettings(unmarked, slots=2, dtype="bfloat16"))
    info = core.info()
    assert info.settings["dtype"] == "bfloat16"
    assert info.not_submittable == ()
    assert info.checkpoint is not None
    assert not info.checkpoint.stand_in
    submit(core, some_prompts((20, 150, 3)), workload(3))
    submit(core, some_prompts((5,)), workload(4, temperature=1.0), first=3)
    heard = Heard().drain(core)
    assert {number: len(answer) for number, answer in heard.answers.items()} == {0: 3, 1: 3, 2: 3, 3: 4}


def _broken(tiny: Path, folder: Path, **config: object) -> Path:
    import json

    folder.mkdir()
    (folder / "model.safetensors").symlink_to(tiny / "model.safetensors")
    before = json.loads((tiny / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(before | config))
    return folder


@pytest.mark.parametrize(
    ("config", "error", "words"),
    [
        ({"architectures": ["GptOsForCausalLM"]}, UnknownName, "did you mean 'GptOssForCausalLM'"),
        ({"architectures": None}, ConfigError, "does not name its architecture"),
        ({"num_hidden_layers": 3, "layer_types": None}, ConfigError, "lacks weights"),
        ({"hidden_size": 32}, ConfigError, "cannot load"),
        ({"max_position_embeddings": 100}, ConfigError, "at most 100"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused(
    tiny_gpt_oss: Path, tmp_path: Path, config: dict[str, object], error: type[HarnessError], words: str
) -> None:
    with pytest.raises(error, match=words):
        TorchCore(TorchSettings(_broken(tiny_gpt_oss, tmp_path / "broken", **config)))


def test_an_absent_checkpoint_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no such checkpoint"):
        TorchCore(TorchSettings(tmp_path / "absent"))


@pytest.mark.parametrize("settings", [{"slots": 0}, {"prefill_chunk": 0}, {"threads": 0}, {"dtype": "int8"}])
def test_settings_that_cannot_be_meant_are_refused(tmp_path: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings))):
        TorchSettings(tmp_path, **settings)
