"""The in-process TensorRT-LLM engine against a double of the LLM API: what is sent, what is told, how it ends."""

from __future__ import annotations

import dataclasses
import json
import select
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from harness.engines.base import (
    Answers,
    Event,
    Failure,
    Finish,
    PromptTable,
    Requests,
    Sampling,
    TokenEvents,
    Tokens,
    Workload,
)
from harness.engines.checkpoint import STAND_IN, digest
from harness.engines.start import EngineSpec, build_core, start_engine
from harness.engines.trtllm import TrtllmCore, build
from harness.engines.trtllm_settings import TrtllmSettings, request_seed
from harness.errors import ConfigError, EngineDied, MissingError, UnknownName
from harness.events import Occupancy
from tests.engines.trtllm_double import double_in_place, make_checkpoint
from tests.harness_process import wait_until

END = 99
SLOTS = 4
SMALL = {"max_seq_len": 9, "max_batch_size": 2}
PATIENCE_S = 20.0
NONE, FIRST, ALL = TokenEvents.NONE, TokenEvents.FIRST, TokenEvents.ALL
Build = Callable[..., TrtllmCore]


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The double's ``llmapi`` in place of the library, on a machine of one GPU."""
    with double_in_place(monkeypatch) as llmapi:
        yield llmapi


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint of 1000 tokens, and a cache of the test's own."""
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))
    return make_checkpoint(tmp_path / "tiny-llm")


@pytest.fixture
def make(double: Any, checkpoint: Path) -> Iterator[Build]:
    """Cores that are closed afterwards."""
    made: list[TrtllmCore] = []

    def core(**options: object) -> TrtllmCore:
        options = {"max_seq_len": 256, "max_batch_size": SLOTS} | options
        made.append(build({"checkpoint": str(checkpoint), "options": options}))
        return made[-1]

    yield core
    for each in made:
        each.close()


@dataclass
class Heard:
    """Everything a core told."""

    answers: dict[int, list[int]] = field(default_factory=dict)
    finish: dict[int, Finish] = field(default_factory=dict)
    times: dict[int, tuple[int, int]] = field(default_factory=dict)
    tokens: dict[int, list[int]] = field(default_factory=dict)
    token_times: dict[int, int] = field(default_factory=dict)
    failures: dict[int, Failure] = field(default_factory=dict)

    def hear(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, Failure):
                assert event.number not in self.failures
                self.failures[event.number] = event
            elif isinstance(event, Tokens):
                self._tokens(event)
            else:
                assert isinstance(event, Answers)
                self._answers(event)

    def _tokens(self, event: Tokens) -> None:
        assert event.tokens.dtype == np.int32
        for number, position, token in zip(event.numbers, event.positions, event.tokens.tolist(), strict=True):
            assert number not in self.answers, "a token after its answer"
            assert position == len(self.tokens.setdefault(number, []))
            self.tokens[number].append(token)
            self.token_times.setdefault(number, event.at_ns)

    def _answers(self, event: Answers) -> None:
        assert event.tokens.dtype == np.int32
        start = 0
        for i, number in enumerate(event.numbers):
            assert number not in self.answers
            self.answers[number] = event.tokens[start : event.ends[i]].tolist()
            self.finish[number] = Finish(event.finish[i])
            self.times[number] = (event.first_ns[i], event.done_ns[i])
            start = event.ends[i]
        assert start == len(event.tokens)

    def __len__(self) -> int:
        return len(self.answers) + len(self.failures)


def workload(cap: int = 32, events: TokenEvents = NONE, temperature: float = 1.0, seed: int = 7) -> Workload:
    return Workload("test", Sampling(temperature, 1.0, 0, cap, (END, 98), seed), events)


def submit(core: TrtllmCore, prompts: Sequence[Sequence[int]], load: Workload, first: int = 0) -> None:
    n = len(prompts)
    core.submit(Requests(load, range(first, first + n), range(n), PromptTable.from_lists(prompts), range(n)))


def hear(core: TrtllmCore, count: int, heard: Heard | None = None) -> Heard:
    """Waits at the descriptor, as the host does, until ``count`` requests have ended."""
    heard = heard or Heard()
    deadline = time.monotonic() + PATIENCE_S
    while len(heard) < count:
        assert time.monotonic() < deadline, f"{len(heard)} of {count} after {PATIENCE_S} s"
        if core.wait_s() is None:
            select.select([core.descriptor()], [], [], 1.0)
        heard.hear(core.step())
    return heard


def ask(core: TrtllmCore, prompts: Sequence[Sequence[int]], load: Workload) -> Heard:
    submit(core, prompts, load)
    return hear(core, len(prompts))


# -- what it is --------------------------------------------------------------------------------------------------------


def test_it_says_what_it_is(make: Build, checkpoint: Path) -> None:
    options = {
        "kv_cache_config": {"enable_block_reuse": False},
        "num_postprocess_workers": 2,
        "env_overrides": {"HF_TOKEN": "secret"},
    }
    info = make(**options).info()
    assert (info.kind, info.vocab_size, info.max_total_tokens, info.slots) == ("trtllm", 1000, 256, SLOTS)
    assert info.versions == {"tensorrt_llm": "0.0.0+double", "torch": "2.9.1", "CUDA": "13.0"}
    assert info.checkpoint is not None
    assert (info.checkpoint.name, info.checkpoint.weight_data_type) == ("tiny-llm", "bf16")
    assert info.checkpoint.sha256 == digest(checkpoint)
    assert info.not_submittable == ()
    assert info.settings["options"] == {"max_seq_len": 256, "max_batch_size": SLOTS} | options
    have = info.settings["read_back"]
    assert isinstance(have, dict)
    assert have["kv_cache_config.enable_block_reuse"] is False
    assert have["kv_cache_config.free_gpu_memory_fraction"] == 0.9, "a default that nobody gave is told too"
    assert have["scheduler_config.capacity_scheduler_policy"] == "GUARANTEED_NO_EVICT"
    assert "model" not in have, "no path of the machine"
    assert not [key for key in have if "env" in key], "no environment"
    json.dumps(info.settings, allow_nan=False)


def test_a_stand_in_is_never_submittable(make: Build, checkpoint: Path) -> None:
    (checkpoint / STAND_IN).write_text(json.dumps({"name": "made up"}))
    assert make().info().not_submittable == ("stand-in checkpoint",)


def test_weights_are_hashed_once_and_called_as_stated(make: Build, checkpoint: Path, tmp_path: Path) -> None:
    settings = {"checkpoint": str(checkpoint), "options": SMALL, "name": "org/model"}
    one = make().info().checkpoint
    other = build(settings | {"weight_data_type": "bf16"})
    other.close()
    assert one is not None
    assert other.info().checkpoint == replace(one, name="org/model")
    assert len(list((tmp_path / "cache" / "digests").iterdir())) == 1
    with pytest.raises(ConfigError, match="the weights are bf16, the configuration says fp8"):
        build(settings | {"weight_data_type": "fp8"})


def test_the_vocabulary_of_a_multimodal_model_lies_one_level_down(make: Build, checkpoint: Path) -> None:
    (checkpoint / "config.json").write_text(json.dumps({"text_config": {"vocab_size": 500}}))
    assert make().info().vocab_size == 500


# -- what is sent ------------------------------------------------------------------------------------------------------


def test_every_sampling_value_is_sent(make: Build, double: Any) -> None:
    ask(make(), [[1, 2], [3]], workload(cap=200))
    for number, params in enumerate(double.script.made):
        assert (params.temperature, params.top_p, params.top_k, params.max_tokens) == (1.0, 1.0, 0, 200)
        assert (params.end_id, params.pad_id, params.stop_token_ids, params.ignore_eos) == (END, END, [98], False)
        assert (params.n, params.detokenize, params.include_stop_str_in_output) == (1, False, False)
        assert params.seed == request_seed(7, number)
        assert not params.greedy


def test_greedy_is_said_so_that_every_version_understands(make: Build, double: Any) -> None:
    core = make()
    one = ask(core, [[5]] * 3, workload(temperature=0.0))
    assert all(params.greedy for params in double.script.made)
    assert len({tuple(answer) for answer in one.answers.values()}) == 1


def test_no_stop_token_is_no_end(make: Build, double: Any) -> None:
    load = Workload("test", Sampling(1.0, 1.0, 0, 20, (), 0), NONE)
    heard = ask(make(), [[5]], load)
    assert double.script.made[0].ignore_eos
    assert (len(heard.answers[0]), heard.finish[0]) == (20, Finish.LENGTH)


def test_each_request_has_a_seed_of_its_own_and_a_second_run_the_same(make: Build) -> None:
    core = make()
    first, again, other = (ask(core, [[5]] * 4, workload(seed=seed)) for seed in (7, 7, 8))
    assert len({tuple(answer) for answer in first.answers.values()}) == 4
    assert first.answers == again.answers
    assert first.answers != other.answers


def test_seeds_fit_and_do_not_collide() -> None:
    seeds = {request_seed(seed, number) for seed in range(20) for number in range(1000)}
    assert len(seeds) == 20_000
    assert min(seeds) >= 0
    assert max(seeds) < 2**63


# -- what is told ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("events", list(TokenEvents))
@pytest.mark.parametrize("end", ["not told", "with the last token", "in a chunk of its own"])
@pytest.mark.parametrize("interval", [1, 20])
def test_answers_are_the_models_tokens_without_the_end(
    make: Build, double: Any, events: TokenEvents, end: str, interval: int
) -> None:
    double.script.end_id_in_token_ids = end != "not told"
    double.script.end_id_alone = end == "in a chunk of its own"
    double.script.answers = {n: double.Answer(tokens=n) for n in (1, 2, 19, 20, 21, 50)}
    core = make(stream_interval=interval)
    lengths = [1, 2, 19, 20, 21, 50, 50]
    before = time.monotonic_ns()
    heard = ask(core, [[n] for n in lengths], workload(cap=50, events=events))
    for number, n in enumerate(lengths):
        assert heard.answers[number] == [double.token_of([n], request_seed(7, number), i) for i in range(n)]
        assert heard.finish[number] is (Finish.LENGTH if n == 50 else Finish.STOP)
        first_ns, done_ns = heard.times[number]
        assert before < first_ns <= done_ns < time.monotonic_ns()
    told = {number: len(tokens) for number, tokens in heard.tokens.items()}
    if events is ALL:
        assert heard.tokens == heard.answers
    elif events is FIRST:
        assert told == dict.fromkeys(range(len(lengths)), 1)
        assert all(heard.tokens[number][0] == heard.answers[number][0] for number in told)
        assert all(heard.token_times[number] >= heard.times[number][0] for number in told)
    else:
        assert not told
    stopped = sum(n != 50 for n in lengths)
    assert core.counters() == {"end_tokens_cut": 0 if end == "not told" else stopped, "failures": 0}


def test_an_answer_of_the_end_token_alone_is_empty(make: Build, double: Any) -> None:
    double.script.answers = {1: double.Answer(tokens=0)}
    for in_ids, alone in ((False, False), (True, False), (True, True)):
        double.script.end_id_in_token_ids, double.script.end_id_alone = in_ids, alone
        heard = ask(make(), [[1]], workload(events=FIRST))
        assert (heard.answers, heard.finish, heard.tokens) == ({0: []}, {0: Finish.STOP}, {})


def test_more_requests_than_it_may_have_wait_outside_the_library(make: Build, double: Any) -> None:
    core = make()
    heard = ask(core, [[n % 90 + 1] for n in range(600)], workload(cap=4))
    assert sorted(heard.answers) == list(range(600))
    assert double.script.most_outstanding == 2 * SLOTS


def test_the_descriptor_sleeps_while_nothing_is_to_be_told(make: Build, double: Any) -> None:
    core = make()
    assert core.wait_s() is None
    assert core.step() == []
    double.script.held = True
    submit(core, [[1]], workload())
    assert select.select([core.descriptor()], [], [], 0.05)[0] == []
    double.script.held = False
    assert select.select([core.descriptor()], [], [], PATIENCE_S)[0]
    assert core.wait_s() == 0
    hear(core, 1)
    assert select.select([core.descriptor()], [], [], 0)[0] == []
    assert core.wait_s() is None


def test_how_full_it_is(make: Build, double: Any) -> None:
    double.script.held = True
    core = make(enable_iter_perf_stats=True)
    submit(core, [[1], [2], [3]], workload())
    wait_until(lambda: core.gauges() == Occupancy(0, 3, 0.0), "three that wait")


def test_nobody_knows_how_full_it_is_where_no_statistics_are_kept(make: Build, double: Any) -> None:
    core = make()
    assert [core.gauges(), core.gauges()] == [None, None]
    assert double.script.stats_asked == 0


def test_statistics_that_break_are_not_asked_for_again(
    make: Build, double: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    double.script.stats_error = "no such thing"
    core = make(enable_iter_perf_stats=True)
    assert core.gauges() is None
    wait_until(lambda: "no such thing" in capfd.readouterr().err, "what is said of it")
    wait_until(lambda: not core._statistics._kept, "that it is noted")
    assert core.gauges() is None
    assert double.script.stats_asked == 1


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def test_requests_that_cannot_be_served_fail_alone(make: Build, double: Any) -> None:
    heard = ask(make(), [[1] * 250, [], [1000], [-1], [1]], workload(cap=7))
    kinds = {number: failure.kind for number, failure in heard.failures.items()}
    assert kinds == {0: "prompt_too_long", 1: "empty_prompt", 2: "bad_token", 3: "bad_token"}
    assert "250 tokens and a cap of 7 exceed the engine's 256" in heard.failures[0].message
    assert list(heard.answers) == [4]
    assert len(double.script.made) == 1


@pytest.mark.parametrize("events", list(TokenEvents))
@pytest.mark.parametrize("reason", ["timeout", "cancelled"])
def test_an_answer_that_was_cut_off_is_a_failure(make: Build, double: Any, events: TokenEvents, reason: str) -> None:
    double.script.answers = {1: double.Answer(tokens=3, finish_reason=reason)}
    core = make()
    heard = ask(core, [[1], [2]], workload(events=events))
    assert heard.failures[0].kind == reason
    assert "after 3 tokens" in heard.failures[0].message
    assert list(heard.answers) == [1]
    assert core.counters()["failures"] == 1


def test_an_error_of_one_request_is_its_own(make: Build, double: Any) -> None:
    double.script.answers = {1: double.Answer(error="no room in the KV cache")}
    heard = ask(make(), [[1], [2], [1]], workload())
    assert {n: (f.kind, f.message) for n, f in heard.failures.items()} == dict.fromkeys(
        (0, 2), ("engine_error", "no room in the KV cache")
    )
    assert list(heard.answers) == [1]


def test_a_request_that_the_library_gives_up_is_not_lost(make: Build, double: Any) -> None:
    double.script.answers = {1: double.Answer(given_up=True)}
    heard = ask(make(), [[1], [2]], workload())
    assert heard.failures[0].kind == "cancelled"
    assert list(heard.answers) == [1]


def test_a_request_that_the_library_refuses_fails(make: Build, double: Any) -> None:
    double.script.refused = "n exceeds max_batch_size"
    heard = ask(make(), [[1]], workload())
    assert heard.failures[0].kind == "refused"
    assert "n exceeds max_batch_size" in heard.failures[0].message


def test_what_was_answered_before_the_library_breaks_is_told_first(make: Build, double: Any) -> None:
    double.script.answers = {1: double.Answer(crash="CUDA error: an illegal memory access")}
    core = make()
    heard = ask(core, [[2], [3]], workload())
    submit(core, [[4]], workload(), first=2)
    hear(core, 3, heard)
    submit(core, [[1], [1]], workload(), first=3)
    with pytest.raises(EngineDied, match="illegal memory access"):
        hear(core, 4, heard)
    with pytest.raises(EngineDied):
        core.step()
    assert core.wait_s() == 0


def test_a_fault_of_ours_in_the_loop_ends_the_engine_and_does_not_hang(make: Build) -> None:
    core = make()
    table = PromptTable.from_lists([[1]])
    core.submit(Requests(workload(), range(1), range(1), table, [5]))
    with pytest.raises(EngineDied, match="IndexError"):
        hear(core, 1)


def test_cancelled_requests_are_aborted_and_never_told(make: Build, double: Any) -> None:
    core = make()
    double.script.held = True
    submit(core, [[n + 1] for n in range(50)], workload(cap=100, events=ALL))
    deadline = time.monotonic() + PATIENCE_S
    while len(double.script.made) < 2 * SLOTS:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    core.cancel()
    submit(core, [[1], [2]], workload(), first=100)
    double.script.held = False
    heard = hear(core, 2)
    assert sorted(heard.answers) == [100, 101]
    assert heard.tokens == {}
    assert double.script.aborted == 2 * SLOTS
    assert core.step() == []


@pytest.mark.parametrize("events", list(TokenEvents))
def test_dropped_requests_are_aborted_and_never_told(make: Build, double: Any, events: TokenEvents) -> None:
    core = make()
    double.script.held = True
    submit(core, [[n + 1] for n in range(50)], workload(events=events))
    deadline = time.monotonic() + PATIENCE_S
    while len(double.script.made) < 2 * SLOTS:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    core.drop({0, 2, 40, 77})
    core.drop({2})
    submit(core, [[1]], workload(), first=100)
    double.script.held = False
    heard = hear(core, 48)
    assert sorted(heard.answers) == [number for number in [*range(50), 100] if number not in {0, 2, 40}]
    assert not heard.failures
    assert double.script.aborted == 2
    assert len(double.script.made) == 50, "the one that waited was never asked"
    assert core.step() == []


def test_requests_behind_one_that_the_library_gives_up_are_asked(make: Build, double: Any) -> None:
    double.script.answers = {1: double.Answer(given_up=True)}
    heard = ask(make(), [[1]] * 5 * SLOTS, workload())
    assert len(heard.failures) == 5 * SLOTS


def test_cancel_with_answers_not_yet_taken(make: Build) -> None:
    core = make()
    submit(core, [[1], [2]], workload())
    assert select.select([core.descriptor()], [], [], PATIENCE_S)[0]
    core.cancel()
    assert core.wait_s() is None
    assert core.step() == []
    assert list(ask(core, [[3]], workload()).answers) == [0]


def test_chats_are_not_for_it(make: Build) -> None:
    core = make()
    for load in (
        Workload("test", workload().sampling, NONE, bodies="chats.bin"),
        Workload("test", workload().sampling, NONE, chat_prompts=True),
    ):
        with pytest.raises(ConfigError, match="no chats"):
            submit(core, [[1]], load)


def test_a_sampling_that_is_not_said_to_the_library_is_refused(make: Build) -> None:
    load = Workload("test", dataclasses.replace(workload().sampling, min_p=0.1, presence_penalty=0.5), NONE)
    with pytest.raises(ConfigError, match=r"does not sample with min_p 0\.1, presence_penalty 0\.5"):
        submit(make(), [[1]], load)


def test_close_may_be_called_again(make: Build) -> None:
    core = make()
    submit(core, [[1]], workload())
    core.close()
    core.close()


# -- settings ----------------------------------------------------------------------------------------------------------


def test_an_option_that_the_installed_library_does_not_know_is_named_before_anything_loads(
    make: Build, double: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm_args = ModuleType("tensorrt_llm.llmapi.llm_args")
    llm_args.TorchLlmArgs = double.LlmArgs  # type: ignore[attr-defined]  # a module made here
    monkeypatch.setitem(sys.modules, llm_args.__name__, llm_args)
    double.script.load_error = "it was loaded"
    with pytest.raises(UnknownName, match=r"kv_cache_config\.enable_blok_reuse") as error:
        make(kv_cache_config={"enable_blok_reuse": False})
    assert "enable_block_reuse" in str(error.value.mend)


def test_where_the_library_does_not_say_its_options_it_decides_itself(
    make: Build, double: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make().info().kind == "trtllm"
    assert "it sees for itself which options it takes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_batchsize": 4}, "max_batchsize"),
        ({"kv_cache_config": {"enable_block_re_use": False}}, "enable_block_re_use"),
        ({"max_num_tokens": 100_000}, "asked for max_num_tokens 100000 and has 65536"),
    ],
)
def test_options_that_the_library_refuses_or_changes(make: Build, options: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make(**options)


def test_options_may_be_written_in_either_case(make: Build) -> None:
    make(scheduler_config={"capacity_scheduler_policy": "MAX_UTILIZATION"}, kv_cache_config={"dtype": "FP8"})


def test_loading_that_fails_is_told(make: Build, double: Any) -> None:
    double.script.load_error = "CUDA out of memory"
    with pytest.raises(EngineDied, match="CUDA out of memory"):
        make()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "needs a checkpoint"),
        ({"checkpoint": 3}, "needs a checkpoint"),
        ({"checkpoint": "x", "options": [1]}, "options are"),
        ({"checkpoint": "x", "options": {}}, "max_seq_len is None"),
        ({"checkpoint": "x", "options": SMALL | {"max_seq_len": True}}, "max_seq_len is True"),
        ({"checkpoint": "x", "options": SMALL | {"max_seq_len": 0}}, "max_seq_len is 0"),
        ({"checkpoint": "x", "options": {"max_seq_len": 9}}, "max_batch_size is None"),
        ({"checkpoint": "x", "options": SMALL | {"model": "y"}}, "options say model"),
        ({"checkpoint": "x", "options": SMALL, "name": 3}, "name is 3"),
        ({"checkpoint": "x", "options": SMALL, "weight_data_type": 4}, "weight_data_type is 4"),
    ],
)
def test_settings_that_cannot_be_meant(settings: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        TrtllmSettings.parse(settings)


def test_an_unknown_setting_is_told_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"(?s)'option'.*did you mean 'options'"):
        TrtllmSettings.parse({"checkpoint": "x", "option": {}})


def test_a_checkpoint_without_a_vocabulary(make: Build, checkpoint: Path) -> None:
    (checkpoint / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match="vocab_size is None"):
        make()


def test_no_checkpoint(double: Any, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no such checkpoint"):
        build({"checkpoint": str(tmp_path / "nothing"), "options": SMALL})


# -- where it cannot be ------------------------------------------------------------------------------------------------


def test_no_library(monkeypatch: pytest.MonkeyPatch, checkpoint: Path) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt_llm", None)
    with pytest.raises(MissingError, match="tensorrt_llm cannot be imported: ModuleNotFoundError") as caught:
        build({"checkpoint": str(checkpoint), "options": SMALL})
    assert caught.value.exit_code == 3
    assert "container" in str(caught.value)
    here = f"this is Python {sys.version_info[0]}.{sys.version_info[1]}"
    assert (here in str(caught.value)) == (sys.version_info[:2] not in {(3, 10), (3, 12)})


def test_no_cuda_library(monkeypatch: pytest.MonkeyPatch, checkpoint: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken" / "tensorrt_llm"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('libcuda.so.1: cannot open shared object file')")
    monkeypatch.syspath_prepend(broken.parent)
    monkeypatch.delitem(sys.modules, "tensorrt_llm", raising=False)
    with pytest.raises(MissingError, match=r"ImportError: libcuda\.so\.1"):
        build({"checkpoint": str(checkpoint), "options": SMALL})


def test_no_gpu(double: Any, monkeypatch: pytest.MonkeyPatch, checkpoint: Path) -> None:
    monkeypatch.setattr(sys.modules["torch"].cuda, "device_count", lambda: 0)
    with pytest.raises(MissingError, match="finds no GPU"):
        build({"checkpoint": str(checkpoint), "options": SMALL})


@pytest.mark.skipif(find_spec("tensorrt_llm") is not None, reason="TensorRT-LLM is installed here")
def test_the_real_path_on_a_machine_without_it(checkpoint: Path, tmp_path: Path) -> None:
    spec = EngineSpec("trtllm", {"checkpoint": str(checkpoint), "options": SMALL})
    with pytest.raises(MissingError, match="tensorrt_llm cannot be imported"):
        build_core(spec)
    log = tmp_path / "engine.log"
    with pytest.raises(MissingError, match="tensorrt_llm cannot be imported") as caught:
        start_engine(spec, log=log, timeout_s=PATIENCE_S)
    assert caught.value.exit_code == 3
    assert "tensorrt_llm cannot be imported" in log.read_text()
