"""gpt-oss-120b under the rules of a round: the one object that runs, scoring and packaging hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from harness.benchmarks.base import Answer, Benchmark, Canary, Dataset, Logged, Made, Score, Which
from harness.benchmarks.gpt_oss_120b import score as scoring
from harness.benchmarks.gpt_oss_120b import scripted, standin, vocab, warmup
from harness.benchmarks.gpt_oss_120b.canary import FinalAnswer, HarmonyRoundTrip
from harness.benchmarks.gpt_oss_120b.dataset import Wanted, read
from harness.benchmarks.gpt_oss_120b.files import NAME, TABLES
from harness.benchmarks.gpt_oss_120b.grading import judge_for, ready
from harness.benchmarks.gpt_oss_120b.judge.settings import current
from harness.benchmarks.gpt_oss_120b.logged import TOKEN_BYTES, token_ids
from harness.benchmarks.scripts import ScriptedAnswers
from harness.engines.base import Int32Array, PromptTable, Sampling
from harness.errors import ConfigError, RunBroke, UnknownName
from harness.rules import RulePack, TokenRules


@dataclass(frozen=True, slots=True)
class GptOss120b:
    """Satisfies :class:`harness.benchmarks.base.Benchmark`, where the methods are described."""

    rules: TokenRules

    @property
    def name(self) -> str:
        """As the round spells it."""
        return NAME

    @property
    def logged(self) -> Logged:
        """Chats are not asked."""
        return "content"

    def table(self, which: Which, scenario: str) -> str:
        """Each kind of leg has its own, whatever the scenario."""
        return which

    def dataset(self, data_dir: Path, table: str) -> Dataset:
        """One table of ``data_dir/gpt-oss-120b``, checked against the rules."""
        which = TABLES.get(table)
        if which is None:
            raise UnknownName("table", table, TABLES)
        return read(data_dir / NAME, which, Wanted.by(self.rules, which))

    def prepare(self, dataset: Dataset, data_dir: Path, tell: Callable[[str], None]) -> Dataset:
        """As it is: the prompts are all that legs need."""
        return dataset

    def prepare_run(self, dataset: Dataset, folder: Path, tell: Callable[[str], None]) -> Dataset:
        """Itself: all runs ask the same."""
        return dataset

    def make_dataset(self, data_dir: Path, *, seed: int, rows: int | None = None) -> Made:
        """Makes the stand-in, with the rules' counts, in ``data_dir/gpt-oss-120b``; see ``standin.make_dataset``."""
        if rows is not None:
            raise ConfigError(
                f"a stand-in of {rows} rows",
                where=NAME,
                expected="the round's counts, which this benchmark's files always have",
                mend="leave --rows away; --test_run makes legs short",
            )
        return standin.make_dataset(data_dir / NAME, seed=seed, counts=standin.Counts.by(self.rules))

    def sampling(self, which: Which, *, seed: int, max_new_tokens: int | None = None) -> Sampling:
        """The rules' sampling. Only accuracy legs have the long output cap; the audit runs as performance does."""
        caps = self.rules.output_caps
        cap = caps.accuracy if which == "accuracy" else caps.performance
        rule = self.rules.sampling.value
        return Sampling(
            temperature=rule.temperature,
            top_p=rule.top_p,
            top_k=rule.top_k,
            max_new_tokens=cap.value if max_new_tokens is None else max_new_tokens,
            stop_token_ids=tuple(self.rules.stop_token_ids.value),
            seed=seed,
        )

    def encode(self, text: str) -> list[int]:
        """Token ids; what spells a special token becomes that token."""
        return vocab.encode(text)

    def warmup_prompts(self, n: int, *, like: Dataset, seed: int) -> PromptTable:
        """Articles of our own in the lengths of ``like``."""
        return warmup.warmup_prompts(n, like=like, seed=seed)

    def canaries(self, *, stand_in_checkpoint: bool) -> tuple[Canary, ...]:
        """The harmony round trip; of trained weights an answer to its end too."""
        round_trip = HarmonyRoundTrip.make(trained=not stand_in_checkpoint)
        if stand_in_checkpoint:
            return (round_trip,)
        least, stop = self.rules.min_answer_tokens.value, self.rules.stop_token_ids.value
        return round_trip, FinalAnswer.make(min_tokens=least, stop_token_ids=stop)

    def score(
        self,
        answers: Iterable[Answer],
        dataset: Dataset,
        *,
        failed: AbstractSet[int] = frozenset(),
        where: object = None,
    ) -> Score:
        """AIME and GPQA graded as the reference grades them; LiveCodeBench's programs run by the judge.

        They are unscored where their tests are not there. MissingError where the judge's self test fails.
        """
        repeats = {name: subset.repeats for name, subset in self.rules.accuracy_subsets.value.items()}
        key = self.rules.accuracy_target.value.key
        judge = judge_for(dataset, self.rules)
        ids = _token_ids(answers, where)
        return scoring.score(ids, dataset, key=key, repeats=repeats, failed=failed, where=where, judge=judge)

    def ready_to_score(self, dataset: Dataset) -> tuple[str, ...]:
        """Whether programs could be judged: see :func:`harness.benchmarks.gpt_oss_120b.grading.ready`."""
        return ready(dataset, self.rules)

    def deviations(self, which: Which) -> tuple[str, ...]:
        """In what this command's options make the scoring of a table depart from what it should be."""
        return current().deviations if which == "accuracy" else ()

    def accuracy_text(self, score: Score) -> str:
        """Who scored, the table of subsets, what is failed and unscored, and the metric where there is one."""
        return scoring.accuracy_text(score)

    def scripted_answers(
        self, dataset: Dataset, shares: Mapping[str, float], *, seed: int, answer_tokens: int
    ) -> ScriptedAnswers:
        """Harmony-shaped answers, right to the stated share."""
        return scripted.scripted_answers(dataset, shares, seed=seed, answer_tokens=answer_tokens)


def _token_ids(answers: Iterable[Answer], where: object) -> Iterator[tuple[int, Int32Array]]:
    for row, data in answers:
        if len(data) % TOKEN_BYTES:
            raise RunBroke(
                f"the answer to row {row} has {len(data)} bytes", where=where, expected="whole int32 token ids"
            )
        yield row, token_ids(data)


def bind(pack: RulePack) -> Benchmark:
    """The benchmark under a round's rules."""
    return GptOss120b(pack.token_benchmark(NAME))
