"""Turns of a trajectory in the torch engine, each going on from what its session has, against the same turns anew.

Both ways get the same chats out of a store, tokenize and answer them; the chats of the one stand in a session, those of
the other alone. Run as ``python benchmarks/torch_sessions.py``; exit status 1 where the goal is missed on a quiet
machine.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from contest import Goal, Prepared, Run, compete, judge, timed

from harness import env
from harness.engines.base import Failure, PromptTable, Replies, Requests, Sampling, TokenEvents, Workload
from harness.engines.bodies import NO_SESSION, BodyStore
from harness.engines.checkpoint import describe
from harness.engines.tiny_deepseek_v3 import make_tiny_deepseek_v3
from harness.engines.torch_cpu import TorchCore, TorchSettings

TURNS = 20
NEW_TOKENS = 16
WORDS = (40, 160)
"""The least and the most words of a tool's result, of about three tokens each."""
ROOM = 16_384
LAST = Goal(f"turn {TURNS} of a trajectory: times as fast as computed anew", 5.0)

Chat = dict[str, Any]


@dataclass(frozen=True)
class Trajectory:
    """The turns of one trajectory, asked of a core out of a store: in a session, or each for itself."""

    core: TorchCore
    store: Path
    first_row: int

    def ask(self, turn: int) -> int:
        """Asks one turn; how many tokens its answer has."""
        load = Workload("turns", Sampling(0.0, 1.0, 0, NEW_TOKENS, (), 0), TokenEvents.NONE, bodies=str(self.store))
        self.core.submit(Requests(load, [turn], [self.first_row + turn], PromptTable.empty(1), [0]))
        tokens = 0
        while self.core.wait_s() is not None:
            for event in self.core.step():
                if isinstance(event, Failure):
                    raise SystemExit(event.message)
                if isinstance(event, Replies):
                    tokens += sum(event.tokens)
        return tokens

    def whole(self) -> int:
        """Asks all turns, one after the other, of a core that has nothing."""
        self.core.cancel()
        return sum(self.ask(turn) for turn in range(TURNS))

    def last(self) -> Prepared:
        """The last turn, behind the one before it."""

        def prepare() -> None:
            self.core.cancel()
            self.ask(TURNS - 2)

        return Prepared(prepare, lambda: self.ask(TURNS - 1))

    def computed(self) -> tuple[int, int]:
        """Tokens of the last turn's prompt, and how many of them are computed."""
        self.last().prepare()
        before = self.core.counters()
        self.ask(TURNS - 1)
        after = self.core.counters()
        prompt, cached = (after[name] - before[name] for name in ("prompt_tokens", "cached_tokens"))
        return prompt, prompt - cached


def main(argv: Sequence[str] | None = None) -> int:
    """Prints each run, the medians and whether the goal is met; 1 where it is missed on a quiet machine."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=5, help="turns of each contestant")
    options = parser.parse_args(argv)
    folder = make_tiny_deepseek_v3(env.cache_dir() / "tiny-deepseek-v3", seed=0)
    print(f"checkpoint {describe(folder).name}, one thread, load average {psutil.getloadavg()[0]:.1f}\n")
    core = TorchCore(TorchSettings(folder, slots=4, max_total_tokens=ROOM))
    with tempfile.TemporaryDirectory() as scratch:
        chats, store = turns(), Path(scratch) / "turns.chats"
        BodyStore.write(store, chats * 2, [0] * TURNS + [NO_SESSION] * TURNS)
        kept, anew = Trajectory(core, store, 0), Trajectory(core, store, TURNS)
        for name, each in (("in a session", kept), ("alone", anew)):
            prompt, computed = each.computed()
            print(f"turn {TURNS} {name}: {computed} of {prompt} prompt tokens are computed")
        print(f"\nturn {TURNS}, {NEW_TOKENS} tokens answered")
        runs = compete({"in a session": kept.last(), "alone": anew.last()}, options.runs)
        verdict = judge(LAST, faster(runs), runs["in a session"] + runs["alone"])
        together = faster({"in a session": [timed(kept.whole)], "alone": [timed(anew.whole)]})
    print(f"all {TURNS} turns, once: {together:.2f} times as fast as computed anew")
    return 0 if verdict else 1


def faster(runs: dict[str, list[Run]]) -> float:
    """Median over the turns of the CPU time of what stands alone over that of what stands in a session."""
    pairs = zip(runs["alone"], runs["in a session"], strict=True)
    return statistics.median(alone.cpu_s / kept.cpu_s for alone, kept in pairs)


def turns() -> list[Chat]:
    """The chats of an agent that calls a tool at every turn, each with all that was said before."""
    chosen = np.random.default_rng(0)

    def words() -> str:
        return " ".join(f"{word:x}" for word in chosen.integers(0, 4096, int(chosen.integers(*WORDS))))

    messages: list[Chat] = [{"role": "system", "content": words()}, {"role": "user", "content": words()}]
    chats: list[Chat] = []
    for turn in range(TURNS):
        chats.append({"messages": list(messages)})
        function = {"name": "bash", "arguments": '{"command": "ls"}'}
        call = {"id": f"call_{turn}", "type": "function", "function": function}
        messages.append({"role": "assistant", "reasoning_content": words(), "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{turn}", "content": words()})
    return chats


if __name__ == "__main__":
    raise SystemExit(main())
