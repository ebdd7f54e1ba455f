"""How many tokens prompts and answers have, where the server did not say: counted afterwards, in several processes.

A turn's prompt is the one before and what is new in it, and messages begin and end with tokens that cut a text; so of
each turn only what is new is tokenized, and of a trajectory's repeats only the system prompt, which is salted anew.
Texts are framed as the project's own template frames them: another model's has a few tokens more or fewer a message.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from harness.benchmarks.qwen3_6_27b import messages
from harness.benchmarks.qwen3_6_27b.store import Library
from harness.benchmarks.qwen3_6_27b.trajectories import Trajectory
from harness.engines.chats import qwen3_vocab
from harness.engines.chats.problems import BadChat
from harness.engines.chats.tool_chat import BEGINNING, message_text, tools_text
from harness.errors import MissingError
from harness.ledger.samples import NONE

Tokens: TypeAlias = Callable[[str], int]
T = TypeVar("T")
R = TypeVar("R")

TOKENIZER_FILE: Final = "tokenizer.json"
_END: Final = "<|im_end|>\n"
_ANSWERS_AT_ONCE: Final = 256
_LONE: Final = 4_000_000
"""Characters that one process counts sooner than others are started."""


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """What counts: the tokenizer of a checkpoint's folder, or Qwen3's vocabulary, which stand-ins have."""

    folder: Path | None = None

    @property
    def name(self) -> str:
        """For people."""
        return "Qwen3's vocabulary" if self.folder is None else f"{TOKENIZER_FILE} of {self.folder.name}"

    def load(self) -> Tokens:
        """What tells how many tokens a text has. MissingError where it is not to be had."""
        if self.folder is None:
            qwen3_vocab.vocabulary()
            return _tokens_of_qwen3
        path = self.folder / TOKENIZER_FILE
        if not path.is_file():
            raise MissingError("the checkpoint has no tokenizer that can be read here", where=path)
        if importlib.util.find_spec("tokenizers") is None:
            raise MissingError("the package tokenizers is not installed", mend="pip install tokenizers")
        from tokenizers import Tokenizer as Loaded

        try:
            found = Loaded.from_file(str(path))
        except Exception as error:  # noqa: BLE001 - the package raises nothing narrower
            raise MissingError(f"not a tokenizer: {error}", where=path) from None
        return lambda text: len(found.encode(text, add_special_tokens=False).ids)


def _tokens_of_qwen3(text: str) -> int:
    return len(qwen3_vocab.encode(text))


def count_prompts(library: Library, rows: Iterable[int], tokenizer: Tokenizer, processes: int) -> dict[int, list[int]]:
    """Tokens of each turn's prompt, by row of the library. MissingError without the tokenizer."""
    systems: dict[str, dict[int, str | None]] = {}
    trajectories: dict[str, Trajectory] = {}
    for row in sorted(set(rows)):
        trajectory = trajectories.setdefault(library.trajectory(row).id, library.trajectory(row))
        systems.setdefault(trajectory.id, {})[row] = library.system(trajectory, library.repeat(row))
    tasks = [(trajectory, systems[name]) for name, trajectory in trajectories.items()]
    size = sum(len(text) for trajectory in trajectories.values() for text in _texts(trajectory))
    counted: dict[int, list[int]] = {}
    for found in _spread(_count_trajectory, tasks, tokenizer, processes, size):
        counted.update(found)
    return counted


def count_answers(answers: Sequence[Mapping[str, Any]], tokenizer: Tokenizer, processes: int) -> list[int]:
    """Tokens of each answer's reasoning, content and calls; NONE for one that no template can write.

    MissingError without the tokenizer.
    """
    texts = [_answer_text(answer) for answer in answers]
    slices = [texts[begin : begin + _ANSWERS_AT_ONCE] for begin in range(0, len(texts), _ANSWERS_AT_ONCE)]
    found = _spread(_count_texts, slices, tokenizer, processes, sum(len(text or "") for text in texts))
    return [count for part in found for count in part]


def _spread(
    count: Callable[[Tokens, T], R], tasks: Sequence[T], tokenizer: Tokenizer, processes: int, size: int
) -> list[R]:
    """What each task comes to, in their order; by several processes where so many characters are worth it."""
    tokens_of = tokenizer.load()  # where it is not to be had, this process says so
    processes = min(processes, len(tasks))
    if processes < 2 or size < _LONE:
        return [count(tokens_of, task) for task in tasks]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, _load, (tokenizer,)) as pool:
        return list(pool.map(_count_here, itertools.repeat(count), tasks))


_loaded: list[Tokens] = []
"""What a process that only counts does so with."""


def _load(tokenizer: Tokenizer) -> None:
    _loaded.append(tokenizer.load())


def _count_here(count: Callable[[Tokens, T], R], task: T) -> R:
    return count(_loaded[0], task)


def _count_texts(tokens_of: Tokens, texts: Sequence[str | None]) -> list[int]:
    return [NONE if text is None else tokens_of(text) for text in texts]


def _count_trajectory(tokens_of: Tokens, task: tuple[Trajectory, Mapping[int, str | None]]) -> dict[int, list[int]]:
    """Tokens of the prompts of all turns, by row; each message is tokenized once."""
    trajectory, systems = task
    known = functools.cache(tokens_of)
    tools = [known(tools_text(each)) for each in _tools(trajectory)]
    new = [tokens_of(text) for text in _texts(trajectory)]
    ends = tokens_of(BEGINNING)
    counted = {}
    for row, system in systems.items():
        before = tokens_of(message_text(0, messages.of_system(system))) if system else 0
        so_far = itertools.accumulate(new, initial=before)
        next(so_far)
        counted[row] = [words + own + ends for words, own in zip(so_far, tools, strict=True)]
    return counted


def _texts(trajectory: Trajectory) -> Iterator[str]:
    """What each turn adds to the history of the one before."""
    before: Sequence[messages.Message] = ()
    for turn in trajectory.turns:
        yield "".join(message_text(turn.number, message) for message in (*before, *turn.said))
        before = () if turn.recorded is None else (turn.recorded,)


def _tools(trajectory: Trajectory) -> Iterator[Sequence[Mapping[str, Any]]]:
    """The tools of each turn: a row's own, or else the first row's."""
    for turn in trajectory.turns:
        yield turn.asked.get("tools", trajectory.turns[0].asked.get("tools", ()))


def _answer_text(answer: Mapping[str, Any]) -> str | None:
    said = {**answer, "role": "assistant", "reasoning_content": answer.get("reasoning")}
    try:
        return message_text(0, said).removeprefix(BEGINNING).removesuffix(_END)
    except BadChat:
        return None
