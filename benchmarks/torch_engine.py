"""The torch engine against ``transformers.generate``: same checkpoint, same prompts, one thread.

``generate`` is given its best: prompts of one length, no padding, and no stop token to look for; chats with images as
ids and pixels made beforehand. Run as ``python benchmarks/torch_engine.py``; exit status 1 where a goal is missed on a
quiet machine.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil
from contest import Goal, Prepared, compete, judge, speedup, timed
from torch_images import images

from harness import env
from harness.engines.base import Answers, Failure, PromptTable, Requests, Sampling, TokenEvents, Workload
from harness.engines.checkpoint import describe, make_tiny_gpt_oss
from harness.engines.torch_cpu import TorchCore, TorchSettings

if TYPE_CHECKING:
    from transformers import PreTrainedModel

VOCABULARY = 199_998
"""Ordinary ids of gpt-oss; those beyond are special."""
PROMPT_TOKENS = 128
NEW_TOKENS = 64
SHORTEST, LONGEST = 16, 112
REQUESTS = 128
SLOTS = 32
STEPS = 12
"""How many steps of all slots are timed at a stretch for the sampler's share: few, and often, against drift."""

PARTS = ("equal", "drawn", "sampler", "images")

Prompts = list[list[int]]


AT_8 = Goal("greedy, 8 requests of equal length: times as fast as generate", 1.4)
AT_32 = Goal("greedy, 32 requests of equal length: times as fast as generate", 1.7)
DRAWN = Goal(f"temperature 1, {REQUESTS} requests, {SHORTEST}..{LONGEST} tokens: times as fast as generate", 3.0)
SAMPLER = Goal(f"sampler: what it adds to a greedy step of {SLOTS} slots, %", 40.0, at_most=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints each run, the medians and which goals are met; 1 where one is missed on a quiet machine."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=5, help="turns of each contestant")
    parser.add_argument("--only", choices=PARTS, help="one part (drawn takes a minute a turn)")
    parser.add_argument("--checkpoint", type=Path, help="default: a tiny stand-in, made in the cache folder")
    options = parser.parse_args(argv)
    verdicts: list[bool] = []
    if options.only in (None, "images"):
        verdicts.append(images(options.runs))
    if options.only != "images":
        verdicts += prompts_of_ids(options)
    return 0 if all(verdicts) else 1


def prompts_of_ids(options: argparse.Namespace) -> list[bool]:
    """Whether each goal for gpt-oss is met."""
    folder = options.checkpoint or make_tiny_gpt_oss(env.cache_dir() / "tiny-gpt-oss", seed=0)
    print(f"checkpoint {describe(folder).name}, one thread, load average {psutil.getloadavg()[0]:.1f}\n")
    core = TorchCore(TorchSettings(folder, slots=SLOTS, threads=1))
    verdicts: list[bool] = []
    if options.only in (None, "sampler"):
        verdicts.append(sampler(core, options.runs))
    if options.only in (None, "equal", "drawn"):
        model = load(folder)
        if options.only != "drawn":
            verdicts += [
                equal_lengths(core, model, count, goal, options.runs) for count, goal in ((8, AT_8), (32, AT_32))
            ]
        if options.only != "equal":
            verdicts.append(drawn_lengths(core, model, options.runs))
    return verdicts


def sampler(core: TorchCore, runs: int) -> bool:
    """Steps of full slots: greedy ones against sampled ones, taking turns."""
    print(f"one step of {SLOTS} slots")
    prompts, steps = drawn_prompts(SLOTS), {}
    for temperature in (0.0, 1.0):
        steps[f"temperature {temperature:.0f}"] = steps_at(core, prompts, temperature)
    for work in steps.values():
        timed(work)
    turns = compete(steps, runs * 4)
    greedy, sampled = (turns[name] for name in steps)
    base, mine = (statistics.median(run.cpu_s for run in done) for done in (greedy, sampled))
    return judge(SAMPLER, (mine / base - 1) * 100, greedy + sampled)


def equal_lengths(core: TorchCore, model: PreTrainedModel, count: int, goal: Goal, runs: int) -> bool:
    """Greedy answers of one length: what continuous batching cannot shorten."""
    print(f"greedy, {count} requests of {PROMPT_TOKENS} + {NEW_TOKENS} tokens")
    prompts, caps = drawn_prompts(count), [NEW_TOKENS] * count
    ours, theirs = ours_of(core, prompts, caps, 0.0), generated(model, prompts, NEW_TOKENS, sample=False)
    same = sum(mine == other for mine, other in zip(ours, theirs, strict=True))
    print(f"  {same} of {count} answers are generate's, id by id")
    turns = compete(
        {
            "generate": lambda: total(generated(model, prompts, NEW_TOKENS, sample=False)),
            "torch engine": lambda: total(ours_of(core, prompts, caps, 0.0)),
        },
        runs,
    )
    return judge(goal, speedup(turns), turns["generate"] + turns["torch engine"])


def drawn_lengths(core: TorchCore, model: PreTrainedModel, runs: int) -> bool:
    """Sampled answers of drawn lengths; ``generate`` takes them in batches, each as long as its longest."""
    print(f"temperature 1, {REQUESTS} requests of {PROMPT_TOKENS} + {SHORTEST}..{LONGEST} tokens")
    prompts = drawn_prompts(REQUESTS)
    caps = np.random.default_rng(1).integers(SHORTEST, LONGEST + 1, REQUESTS).tolist()

    def in_batches() -> int:
        for first in range(0, REQUESTS, SLOTS):
            batch = slice(first, first + SLOTS)
            generated(model, prompts[batch], max(caps[batch]), sample=True)
        return sum(caps)

    generated(model, prompts[:SLOTS], 2, sample=True)
    ours_of(core, prompts[:SLOTS], [2] * SLOTS, 1.0)
    turns = compete({"generate": in_batches, "torch engine": lambda: total(ours_of(core, prompts, caps, 1.0))}, runs)
    return judge(DRAWN, speedup(turns), turns["generate"] + turns["torch engine"])


def drawn_prompts(count: int) -> Prompts:
    """``count`` prompts of ``PROMPT_TOKENS`` ids each."""
    prompts: Prompts = np.random.default_rng(count).integers(0, VOCABULARY, (count, PROMPT_TOKENS)).tolist()
    return prompts


def load(folder: Path) -> PreTrainedModel:
    """The checkpoint as transformers loads it by default, in float32."""
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def generated(model: PreTrainedModel, prompts: Prompts, count: int, *, sample: bool) -> list[list[int]]:
    """What ``generate`` answers: ``count`` tokens to each prompt, as one batch."""
    import torch
    from transformers import GenerationConfig

    choice = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0} if sample else {"do_sample": False}
    config = GenerationConfig(max_new_tokens=count, pad_token_id=0, eos_token_id=None, **choice)
    ids = torch.tensor(prompts)
    output = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)
    answers: list[list[int]] = output[:, ids.shape[1] :].tolist()
    return answers


def workload(cap: int, temperature: float) -> Workload:
    """Nothing told but whole answers, as Offline wants it; no stop token."""
    return Workload("benchmark", Sampling(temperature, 1.0, 0, cap, (), 0), TokenEvents.NONE)


def submit(core: TorchCore, prompts: Prompts, caps: list[int], temperature: float) -> None:
    """Each prompt as a request of its own length, numbered in order."""
    table = PromptTable.from_lists(prompts)
    for number, cap in enumerate(caps):
        core.submit(Requests(workload(cap, temperature), [number], [number], table, [number]))


def ours_of(core: TorchCore, prompts: Prompts, caps: list[int], temperature: float) -> list[list[int]]:
    """What the engine answers."""
    submit(core, prompts, caps, temperature)
    answers: list[list[int]] = [[] for _ in prompts]
    while core.wait_s() is not None:
        for event in core.step():
            if isinstance(event, Failure):
                raise SystemExit(event.message)
            if isinstance(event, Answers):
                parts = np.split(event.tokens, event.ends[:-1])
                for number, part in zip(event.numbers, parts, strict=True):
                    answers[number] = part.tolist()
    return answers


def steps_at(core: TorchCore, prompts: Prompts, temperature: float) -> Callable[[], int]:
    """What fills all slots, untimed, and returns what is timed: ``STEPS`` steps of them."""

    def prepare() -> None:
        core.cancel()
        submit(core, prompts, [LONGEST * 2] * len(prompts), temperature)
        for _ in range(-(-PROMPT_TOKENS * SLOTS // int(str(core.info().settings["prefill_chunk"]))) + 2):
            core.step()

    def steps() -> int:
        for _ in range(STEPS):
            core.step()
        return STEPS * SLOTS

    return Prepared(prepare, steps)


def total(answers: list[list[int]]) -> int:
    """Tokens of all answers."""
    return sum(map(len, answers))


if __name__ == "__main__":
    raise SystemExit(main())
