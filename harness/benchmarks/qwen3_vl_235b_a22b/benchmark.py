"""Qwen3-VL-235B-A22B under the rules of a round: the one object that runs, scoring and packaging hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from harness.benchmarks.base import Answer, Benchmark, Canary, Chats, Dataset, Logged, Made, Score, Which
from harness.benchmarks.qwen3_vl_235b_a22b import dataset as datasets
from harness.benchmarks.qwen3_vl_235b_a22b import score as scoring
from harness.benchmarks.qwen3_vl_235b_a22b import scripted, sidecar, standin, store, tokens, warmup
from harness.benchmarks.qwen3_vl_235b_a22b.canary import CategoryCanary
from harness.benchmarks.qwen3_vl_235b_a22b.files import CATALOGUE, NAME, TABLES, TableSource
from harness.benchmarks.qwen3_vl_235b_a22b.prompts import VERSIONS, Version
from harness.benchmarks.scripts import ScriptedReplies
from harness.engines.base import Sampling
from harness.errors import ConfigError
from harness.rules import ImageRules, RulePack

_CANARY_TOKENS = 256
"""Of each answer to a canary, where the round sets no cap."""


@dataclass(frozen=True, slots=True)
class Qwen3Vl:
    """Satisfies :class:`harness.benchmarks.base.Benchmark`, where the methods are described.

    ``version`` says which round's wording of the prompt is asked, and whose scorer is followed.
    """

    rules: ImageRules
    version: Version

    @property
    def name(self) -> str:
        """As the round spells it."""
        return NAME

    @property
    def logged(self) -> Logged:
        """The text: nothing else is scored."""
        return "content"

    def table(self, which: Which, scenario: str) -> str:
        """The catalogue; in a scenario for which the rules name a data set of its own, that one."""
        keys = {key: table for table, key in TABLES.items() if key in self.rules.dataset_sources}
        return keys.get(scenario, CATALOGUE)

    def dataset(self, data_dir: Path, table: str) -> Dataset:
        """One table of ``data_dir/qwen3-vl-235b-a22b``, checked against the rules; no picture is read."""
        (subset,) = self.rules.accuracy_subsets.value
        wanted = datasets.Wanted(TableSource.of(self.rules, table), subset)
        return datasets.read(data_dir / NAME, table, wanted)

    def prepare(self, dataset: Dataset, data_dir: Path, tell: Callable[[str], None]) -> Dataset:
        """With its chats, made by several processes where they are not there yet; see :mod:`.store`."""
        return store.prepare(dataset, data_dir / NAME, self.version, tell)

    def prepare_run(self, dataset: Dataset, folder: Path, tell: Callable[[str], None]) -> Dataset:
        """Itself: all runs ask the same."""
        return dataset

    def make_dataset(self, data_dir: Path, *, seed: int, rows: int | None = None) -> Made:
        """Makes the stand-in in ``data_dir/qwen3-vl-235b-a22b``; see :func:`.standin.make_dataset`."""
        return standin.make_dataset(data_dir / NAME, seed=seed, rules=self.rules, rows=rows)

    def sampling(self, which: Which, *, seed: int, max_new_tokens: int | None = None) -> Sampling:
        """The rules' sampling, every value of it; the checkpoint's own end tokens end an answer."""
        rule = self.rules.sampling.value
        more = self.rules.sampling_more.value if self.rules.sampling_more else {}
        return Sampling(
            temperature=rule.temperature,
            top_p=rule.top_p,
            top_k=rule.top_k,
            max_new_tokens=self._cap(which) if max_new_tokens is None else max_new_tokens,
            stop_token_ids=(),
            seed=seed,
            **more,
        )

    def encode(self, text: str) -> list[int]:
        """Token ids; what spells a special token becomes that token."""
        return tokens.encode(text)

    def warmup_prompts(self, n: int, *, like: Dataset, seed: int) -> Chats:
        """Products and pictures of our own, about as long as those of ``like``."""
        return warmup.warmup_chats(n, like=like, seed=seed, version=self.version)

    def canaries(self, *, stand_in_checkpoint: bool) -> tuple[Canary, ...]:
        """A few pictures that trained weights must tell apart; of others only text is expected."""
        cap = self._cap("accuracy") if self.rules.output_caps else _CANARY_TOKENS
        return (CategoryCanary.make(trained=not stand_in_checkpoint, version=self.version, max_new_tokens=cap),)

    def score(
        self,
        answers: Iterable[Answer],
        dataset: Dataset,
        *,
        failed: AbstractSet[int] = frozenset(),
        where: object = None,
    ) -> Score:
        """Hierarchical F1 of the categories, with brand and second-hand beside it."""
        return scoring.score(
            answers,
            dataset,
            datasets.truths(dataset),
            key=self.rules.accuracy_target.value.key,
            version=self.version,
            failed=failed,
            where=where,
        )

    def ready_to_score(self, dataset: Dataset) -> tuple[str, ...]:
        """Whether every truth can be read; tells of rows that no answer can be right for, and of a stated revision."""
        datasets.truths(dataset)
        lines = []
        rows = datasets.outside(dataset)
        if rows:
            lines.append(
                f"{len(rows)} of {dataset.rows} rows do not offer their true category, row {rows[0]} the first"
            )
        about = None if dataset.stand_in else sidecar.read(dataset.files[0].path)
        if about is not None and about.how == "stated":
            lines.append(f"that {dataset.name} is of revision {about.revision}, a person says; it was not fetched here")
        return tuple(lines)

    def deviations(self, which: Which) -> tuple[str, ...]:
        """None: no option changes how answers are scored."""
        return ()

    def accuracy_text(self, score: Score) -> str:
        """Who scored, the table of subsets, the figures beside the metric, and the metric where there is one."""
        return scoring.accuracy_text(score)

    def scripted_answers(
        self, dataset: Dataset, shares: Mapping[str, float], *, seed: int, answer_tokens: int
    ) -> ScriptedReplies:
        """Replies in the form that is scored, right to the stated share."""
        return scripted.scripted_answers(dataset, shares, seed=seed, answer_tokens=answer_tokens)

    def _cap(self, which: Which) -> int:
        caps = self.rules.output_caps
        if caps is None:
            raise ConfigError(
                "the round sets no cap of an answer's tokens", where=NAME, mend="state one in the benchmark's file"
            )
        return (caps.accuracy if which == "accuracy" else caps.performance).value


def bind(pack: RulePack) -> Benchmark:
    """The benchmark under a round's rules. A round that has no wording of its own asks in the latest."""
    version = next((version for version in VERSIONS if version == pack.round), VERSIONS[0])
    return Qwen3Vl(pack.image_benchmark(NAME), version)
