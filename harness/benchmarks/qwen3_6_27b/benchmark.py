"""qwen3.6-27b, the agentic benchmark, under the rules of a round: the one object that runs, scoring and packaging hold.

Performance legs replay recorded trajectories, accuracy legs ask BFCL's single turns.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from harness.benchmarks.base import Answer, Benchmark, Canary, Chats, Dataset, Logged, Made, Score, Which
from harness.benchmarks.qwen3_6_27b import scripted, standin, tables, warmup
from harness.benchmarks.qwen3_6_27b.bfcl import requests, selftest
from harness.benchmarks.qwen3_6_27b.bfcl import score as scoring
from harness.benchmarks.qwen3_6_27b.bfcl import scripted as scripted_questions
from harness.benchmarks.qwen3_6_27b.bfcl.environment import Environment
from harness.benchmarks.qwen3_6_27b.canary import ToolCanary
from harness.benchmarks.qwen3_6_27b.files import NAME
from harness.benchmarks.qwen3_6_27b.requests import EncodedTrajectory
from harness.benchmarks.qwen3_6_27b.sampling import rules_of, sampling
from harness.benchmarks.scripts import ScriptedReplies
from harness.config.models import Agentic
from harness.engines.base import Sampling
from harness.engines.bodies import encoded
from harness.engines.chats import qwen3_vocab
from harness.errors import UnknownName
from harness.rules import RulePack, TrajectoryRules

_SALT_BITS = 63


@dataclass(frozen=True, slots=True)
class Qwen36Agentic:
    """Satisfies :class:`harness.benchmarks.base.Benchmark`, where the methods are described.

    ``agentic`` says how trajectories are asked; its ``chat_template_kwargs`` go with every chat of either table.
    """

    rules: TrajectoryRules
    agentic: Agentic

    @property
    def name(self) -> str:
        """As the round spells it."""
        return NAME

    @property
    def logged(self) -> Logged:
        """The whole reply: calls of tools are what is scored."""
        return "reply"

    def table(self, which: Which, scenario: str) -> str:
        """Questions where accuracy is asked for, trajectories else."""
        return tables.BFCL if which == "accuracy" else tables.TRAJECTORIES

    def dataset(self, data_dir: Path, table: str) -> Dataset:
        """One table of ``data_dir/qwen3.6-27b``, checked against the rules; BFCL's is made where it is not there."""
        if table == tables.TRAJECTORIES:
            return tables.trajectories(data_dir / NAME, self.rules, self.agentic)
        if table == tables.BFCL:
            return tables.questions(data_dir / NAME, self.rules)
        raise UnknownName("table", table, (tables.TRAJECTORIES, tables.BFCL))

    def prepare(self, dataset: Dataset, data_dir: Path, tell: Callable[[str], None]) -> Dataset:
        """With its chats, made where they are not there yet: of trajectories no more repeats than its rows need.

        Trajectories that each run salts by itself stay without, until :meth:`prepare_run`.
        """
        return tables.prepared(dataset, self.rules, self.agentic, data_dir / NAME, tell)

    def prepare_run(self, dataset: Dataset, folder: Path, tell: Callable[[str], None]) -> Dataset:
        """Trajectories salted by a number that is drawn for the run alone, where that is asked for; else itself.

        A data set that has its ``salt`` already keeps it: the same chats are made again.
        """
        if self.agentic.salt != "run" or not dataset.trajectories:
            return dataset
        salt = secrets.randbits(_SALT_BITS) if dataset.salt is None else dataset.salt
        return tables.prepared_for_run(dataset, self.agentic, salt, folder, tell)

    def make_dataset(self, data_dir: Path, *, seed: int, rows: int | None = None) -> Made:
        """Makes the stand-in in ``data_dir/qwen3.6-27b``; see :func:`.standin.make_dataset`."""
        return standin.make_dataset(data_dir / NAME, seed=seed, rules=self.rules, rows=rows)

    def sampling(self, which: Which, *, seed: int, max_new_tokens: int | None = None) -> Sampling:
        """The round's sampling. It has a seed that every request carries, and ``seed`` is not asked for."""
        return sampling(self.rules, max_new_tokens=max_new_tokens)

    def encode(self, text: str) -> list[int]:
        """Token ids in Qwen3's vocabulary, which stand-in checkpoints have: those that are served bring their own."""
        return qwen3_vocab.encode(text)

    def warmup_prompts(self, n: int, *, like: Dataset, seed: int) -> Chats:
        """Tasks of our own, their lengths drawn from those of ``like``."""
        return warmup.warmup_chats(n, lengths=self._lengths(like), seed=seed, more=tables.more_of(self.agentic))

    def canaries(self, *, stand_in_checkpoint: bool) -> tuple[Canary, ...]:
        """A tool to call, and a tool's result to read; of a stand-in checkpoint only an answer is expected."""
        cap = sampling(self.rules).max_new_tokens
        more = tables.more_of(self.agentic)
        return (ToolCanary.make(trained=not stand_in_checkpoint, more=more, max_new_tokens=cap),)

    def score(
        self,
        answers: Iterable[Answer],
        dataset: Dataset,
        *,
        failed: AbstractSet[int] = frozenset(),
        where: object = None,
    ) -> Score:
        """BFCL's overall accuracy in percent, with the normalised one, categories and subsets beside it.

        MissingError where bfcl-eval's checker is not to be had, or judges what is known otherwise.
        """
        environment = Environment.named(self.rules.accuracy_data.value)
        asked = tables.table_of(dataset, self.rules)
        return scoring.score(answers, asked, self.rules, environment, failed=failed, where=where).score

    def ready_to_score(self, dataset: Dataset) -> tuple[str, ...]:
        """Whether the checker is there and judges rightly what is known; trajectories need none."""
        if dataset.trajectories:
            return ()
        data = self.rules.accuracy_data.value
        passed = selftest.self_test(Environment.named(data))
        return (f"{data.package} {data.version} judges {len(passed)} known answers rightly",)

    def deviations(self, which: Which) -> tuple[str, ...]:
        """In what trajectories are asked otherwise than in the round's own run, which neither salts nor waits."""
        if which == "accuracy":
            return ()
        said = []
        if self.agentic.salt is not None:
            said.append(f"salted prompts ({self.agentic.salt})")
        if self.agentic.tool_delays:
            said.append("each turn waits as long as its tool took")
        return tuple(said)

    def accuracy_text(self, score: Score) -> str:
        """Who scored, the table of categories, each subset's score, and the metric where there is one."""
        return scoring.accuracy_text(score, self.rules)

    def scripted_answers(
        self, dataset: Dataset, shares: Mapping[str, float], *, seed: int, answer_tokens: int
    ) -> ScriptedReplies:
        """Of trajectories the recorded answers, of questions those that are right to the stated share."""
        most = sampling(self.rules).max_new_tokens - 1
        if dataset.trajectories:
            library = tables.library_of(dataset, self.agentic)
            return scripted.replies(library, dataset, shares, seed=seed, answer_tokens=answer_tokens, most=most)
        asked = tables.table_of(dataset, self.rules)
        made = scripted_questions.replies(asked, shares, seed=seed, answer_tokens=answer_tokens)
        return ScriptedReplies.packed(made, scripted.token_counts(made, most))

    def _lengths(self, like: Dataset) -> Sequence[int]:
        """Bytes of each chat that a data set asks."""
        if not like.trajectories:
            return [len(encoded(body)) for body in requests.bodies(tables.table_of(like, self.rules))]
        found: list[int] = []
        for trajectory in tables.source_of(like).trajectories[: like.rows]:
            found += EncodedTrajectory.of(trajectory, {}).lengths
        return found


def bind(pack: RulePack) -> Benchmark:
    """The benchmark under a round's rules, asked as the defaults say."""
    return bind_agentic(pack, Agentic())


def bind_agentic(pack: RulePack, agentic: Agentic) -> Benchmark:
    """The benchmark under a round's rules, its trajectories asked so."""
    return Qwen36Agentic(rules_of(pack), agentic)
