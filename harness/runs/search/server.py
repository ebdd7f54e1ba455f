"""The search of a rate at which queries come (Server, Interactive), run by run."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Final

from harness.errors import ConfigError
from harness.ledger import RunRecord
from harness.ledger.samples import read_samples
from harness.ledger.search import SearchEcho
from harness.ledger.store import SAMPLES
from harness.rules import early_stopping
from harness.runs.search import strategy
from harness.runs.search.constraint import Judged, Outcome, judge
from harness.runs.search.legs import Size, full_queries, full_seconds
from harness.runs.search.limits import PERCENTILE, limits_of
from harness.runs.search.reading import Reading, read
from harness.runs.search.session import Made, Search
from harness.runs.search.steps import AskFull, AskProbe, Confirmed, Settings, Told
from harness.runs.search.told import server_run
from harness.runs.search.watching import overrun

_LATENCIES: Final = 4
"""A probe is so many times as long as its answers take, or the engine's batches fill for most of it."""
_AS_LONG: Final = 0.8


class ServerSearch:
    """Searches the rate of one row."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._limits = limits_of(search.leg.scenario_rules)
        self._full_s = full_seconds(search.leg)
        self._seconds = search.asked.seconds(search.leg)

    def run(self) -> SearchEcho:
        """Searches to the end, and returns what it came to."""
        search = self._search
        state = self._begun(search.first_guess())
        while True:
            step = state.step()
            if isinstance(step, AskProbe):
                state = state.told(self._probe(step))
            elif isinstance(step, AskFull):
                state = state.confirmed(self._full(step))
            else:
                return search.end(step)

    def _begun(self, guess: float) -> strategy.Search:
        """A search that knows what the probes of an interrupted one came to."""
        search, asked = self._search, self._search.asked
        settings = Settings(asked.tolerance, asked.max_probes, share=self._forgiven(guess))
        search.rules(dataclasses.asdict(settings) | {"probe_seconds": self._seconds})
        former = [made for made in search.former() if self._as_long(made)]
        if former:
            search.group.tell(f"probes of a search that was interrupted, taken as they are: {len(former)}")
        state = strategy.Search(guess, settings)
        for made in former:
            state = state.told(self._told(made, former=True))
        return state

    def _forgiven(self, guess: float) -> float:
        """The share that early stopping lets be over a limit in a full run. ConfigError where it would have no say."""
        leg = self._search.leg
        queries = full_queries(leg, guess, self._search.dataset_rows)
        allowed = early_stopping.allowed_over(queries, PERCENTILE)
        if allowed < 0:
            raise ConfigError(
                f"a full run of {leg.scenario} at {guess:g} samples/s has {queries} queries: early stopping wants more",
                where=f"systems/{leg.system}/{leg.benchmark}.yaml: scenarios.{leg.scenario}",
                expected=f"at least {early_stopping.min_queries(0, PERCENTILE)}",
                mend="raise min_query_count or min_duration_ms"
                if not leg.test_run
                else "raise test_run.server_queries",
            )
        return allowed / queries if allowed else 1 - PERCENTILE

    def _as_long(self, made: Made) -> bool:
        """Whether a probe is as long as this search would make it; one that was ended early is what it is."""
        probe, counts = made.record.probe, made.record.counts
        if made.hopeless or probe is None or counts is None:
            return bool(made.hopeless)
        return counts.issued >= _AS_LONG * Size.of(probe.rate, self._seconds, self._search.dataset_rows).queries

    def _probe(self, step: AskProbe) -> Told:
        size = Size.of(step.rate, self._seconds, self._search.dataset_rows)
        told = self._told(self._search.probe(step, size, overrun(size.queries), self._noted))
        if told.judged.leans_to_pass and told.reading is not None:
            self._seconds = max(self._seconds, min(_LATENCIES * told.reading.latency_p50_ns / 1e9, self._full_s / 2))
        return told

    def _noted(self, folder: Path, record: RunRecord) -> RunRecord:
        """The record of a probe with what it came to."""
        judged = judge(read(read_samples(folder / SAMPLES), self._limits), self._full_s)
        if record.probe is None:
            raise ValueError(f"{record.id} is no probe")
        echo = record.probe.model_copy(update={"outcome": judged.outcome.value, "reason": judged.why})
        return record.model_copy(update={"probe": echo})

    def _told(self, made: Made, *, former: bool = False) -> Told:
        """What a probe came to, written down."""
        probe = made.record.probe
        if probe is None:
            raise ValueError(f"{made.record.id} is no probe")
        reading = self._reading(made)
        if made.hopeless or reading is None:
            judged = Judged(Outcome.FAILS, False, made.hopeless or "nothing was asked")
        else:
            judged = judge(reading, self._full_s)
        line = server_run(made.record, probe.purpose, reading, judged.outcome.value, _leaning(judged))
        self._search.note(line.model_copy(update={"former": former}))
        return Told(probe.rate, judged, reading)

    def _reading(self, made: Made, filling: float | None = None) -> Reading | None:
        columns = made.columns
        if len(columns["issued_ns"]) < 2:
            return None
        return read(columns, self._limits) if filling is None else read(columns, self._limits, filling)

    def _full(self, step: AskFull) -> Confirmed:
        made = self._search.full(step)
        reading = self._reading(made, 0.0)
        mendable, why = made.why_not
        outcome = "VALID" if made.valid else "INVALID"
        result = made.record.result
        told = f"{result.value:,.2f} {result.units}" if made.valid and result is not None else why
        self._search.note(server_run(made.record, step.purpose, reading, outcome, told))
        return Confirmed(step.rate, made.valid, mendable, why, reading)


def _leaning(judged: Judged) -> str:
    if judged.outcome is not Outcome.UNDECIDED:
        return judged.why
    return f"leans to {'pass' if judged.leans_to_pass else 'fail'}: {judged.why}"
