"""The trajectories that a run of the endpoints client replays: how many, which requests they are, what was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.benchmarks.base import Dataset
from harness.benchmarks.qwen3_6_27b import fields, requests, tables
from harness.benchmarks.qwen3_6_27b.bfcl.requests import body
from harness.benchmarks.qwen3_6_27b.bfcl.table import Row
from harness.benchmarks.qwen3_6_27b.dataset import TrajectorySet
from harness.benchmarks.qwen3_6_27b.inline import InlineScore, Issued, score
from harness.benchmarks.qwen3_6_27b.requests import EncodedTrajectory
from harness.clients.endpoints.events import Phase, digest
from harness.rules import BenchmarkRules, TrajectoryRules


@dataclass(frozen=True, slots=True)
class Replay:
    """What is replayed, the first trajectories of their file, and the table of questions that is asked then.

    ``questions`` are in the client's order, which is by subset, and ``places`` says which row of our table each is.
    ``whole`` and ``whole_questions`` are whether these are the round's, all of them. The client numbers turns through,
    in their file's order.
    """

    source: TrajectorySet
    questions: tuple[Row, ...]
    places: tuple[int, ...]
    whole_questions: bool

    @property
    def whole(self) -> bool:
        """Whether all of the round's trajectories are replayed."""
        return self.source.whole

    @property
    def trajectories(self) -> int:
        """How many are issued."""
        return len(self.source.trajectories)

    @property
    def turns(self) -> int:
        """How many requests they are."""
        return self.source.turns

    @property
    def asked_bytes(self) -> int:
        """Bytes of all requests together, which the client's account has in it."""
        long = sum(
            sum(EncodedTrajectory.of(each, {}).lengths) + len(each.turns) * len((each.system or "").encode())
            for each in self.source.trajectories
        )
        return long + sum(len(str(body(row))) for row in self.questions)

    def digests(self) -> list[bytes]:
        """Of the messages and tools of each turn, in order."""
        return [digest(asked["messages"], asked.get("tools")) for asked in self._requests()]

    def question_digests(self) -> list[bytes]:
        """Of those of each question, in order."""
        return [digest(asked["messages"], asked["tools"]) for asked in map(body, self.questions)]

    def inline(self, phase: Phase) -> InlineScore:
        """The score of a phase's answers by the recorded commands. ValueError for a row that is no turn."""
        places = [(each, place) for each in self.source.trajectories for place in range(len(each.turns))]
        answers = [None if came is None else came.message for came in phase.answers]
        asked = [places[row] for row in phase.rows.tolist()]
        return score(
            Issued(trajectory, place, answer) for (trajectory, place), answer in zip(asked, answers, strict=True)
        )

    def _requests(self) -> Iterator[dict[str, object]]:
        run = {"model": "", fields.CAP: None}
        for each in self.source.trajectories:
            for place in range(len(each.turns)):
                yield requests.request(each, place, run)


def replay_of(
    rules: BenchmarkRules, measured: Dataset | None, scored: Dataset | None, most: int | None
) -> Replay | None:
    """The replay of a benchmark's two tables, cut to ``most`` trajectories; None where it replays none.

    DatasetError where a file was changed since it was read.
    """
    if not isinstance(rules, TrajectoryRules) or measured is None or scored is None:
        return None
    source = tables.source_of(measured)
    if most is not None and most < len(source.trajectories):
        source = source.head(most)
    rows = tables.table_of(scored, rules).rows
    places = sorted(range(len(rows)), key=lambda place: rows[place].subset)
    return Replay(source, tuple(rows[at] for at in places), tuple(places), scored.whole and not scored.stand_in)
