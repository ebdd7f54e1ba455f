"""The whole check, in order: the server, legs through it, the engine in process, legs through that."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Final

from harness import benchmarks, rules
from harness.config.models import Engine, TrtllmEngine
from harness.engines.base import EngineInfo
from harness.engines.group import EngineGroup
from harness.errors import HarnessError, Interrupted
from harness.events import Note, Observer
from harness.ledger.store import write_atomically
from harness.machine import capture
from harness.rules.engine_keys import load_or_older
from harness.runs.engine_up import engine_up
from harness.runs.gpu_check import inprocess, served
from harness.runs.gpu_check.asker import Asker
from harness.runs.gpu_check.inprocess import Asked
from harness.runs.gpu_check.legs import BENCHMARK, SYSTEM, LegPlace, short_legs
from harness.runs.gpu_check.memory import Card, judge_memory, read_cards, weights_bytes
from harness.runs.gpu_check.report import Finding, Outcome, Report, failed, not_asked, passed
from harness.runs.gpu_check.served import Served
from harness.runs.gpu_check.settings import CheckSettings
from harness.runs.identity import versions
from harness.runs.servers import Serving, serving

REPORT: Final = "gpu_check.json"
_LEGS_S: Final = 60.0
_MEMORY: Final = "does loading take the memory that is expected?"
_GOES_ON: Final = "does it go on to the end of the check?"
_SETTINGS: Final = "are the settings those that were asked for?"
_STARTS: Final = "does it start, and say what was asked of it?"


class Check:
    """One run of the check; what it found so far is on disk whenever it stops."""

    def __init__(self, settings: CheckSettings, command: Sequence[str], observer: Observer) -> None:
        settings.out.mkdir(parents=True, exist_ok=True)
        self._settings = settings
        self._observer = observer
        self._deadline = time.monotonic() + settings.budget_s
        self._slowest_start_s = 0.0
        self._place = LegPlace(settings.out / "results", settings.data_dir, tuple(command), rules.load(rules.LATEST))
        cards = read_cards()
        self.report = Report(
            {
                "versions": versions(),
                "command": list(command),
                "asked": {"server": settings.server, "options": settings.started_with, "gpus": settings.gpus},
                "accelerators": cards if isinstance(cards, str) else [asdict(card) for card in cards],
            }
        )

    def run(self) -> Report:
        """Asks everything. A part that cannot be started has failed, and the next one begins."""
        if "server" in self._settings.parts:
            with self._part(served.WHERE):
                self._server()
        if "in_process" in self._settings.parts:
            with self._part(inprocess.WHERE):
                self._in_process()
        self.report.facts["machine"] = capture(self._frameworks()).facts
        self._write()
        return self.report

    @contextmanager
    def _part(self, where: str) -> Iterator[None]:
        try:
            yield
        except Interrupted:
            raise
        except HarnessError as error:
            name, question = ("goes on", _GOES_ON) if where in self.report.facts else ("starts", _STARTS)
            self._add(Finding(where, name, question, failed(f"{type(error).__name__}: {error}")))

    def _server(self) -> None:
        settings, before, started = self._settings, read_cards(), time.monotonic()
        engine = settings.http_engine()
        self._note_list(engine.server, engine.version)
        with serving(engine, name=SYSTEM, folder=settings.out, observer=self._observer) as found:
            self._started(served.WHERE, found.info, time.monotonic() - started)
            taken = not_asked("it ran before") if settings.endpoint else self._memory(before, settings.started_with)
            self._add(Finding(served.WHERE, "memory", _MEMORY, taken))
            self._add(Finding(served.WHERE, "settings", _SETTINGS, _told(found)))
            ((_, url),) = found.endpoints
            vocabulary, longest = found.info.vocab_size, found.info.max_total_tokens
            asked = Served(Asker(url, found.model), settings.server, settings.started_with, vocabulary, longest)
            self._add(*served.ask_all(asked))
            over = engine.model_copy(update={"endpoints": [url]})
            with self._up(over, served.WHERE) as group:
                self._legs(over, group, served.WHERE)

    def _in_process(self) -> None:
        settings = self._settings
        if self._left_s() < self._slowest_start_s + _LEGS_S:
            self._add(Finding(inprocess.WHERE, "starts", _STARTS, not_asked(self._hurry())))
            return
        engine, options = settings.own_engine(), {} if settings.server == "torch" else settings.own_options()
        if isinstance(engine, TrtllmEngine):
            self._note_list(engine.kind, engine.version)
        before, started = read_cards(), time.monotonic()
        with self._up(engine, inprocess.WHERE) as group:
            self._started(inprocess.WHERE, group.info, time.monotonic() - started)
            taken = self._memory(before, options)
            self._add(Finding(inprocess.WHERE, "memory", _MEMORY, taken))
            client = group.connect()
            try:
                self._add(*inprocess.ask_all(Asked(client, options)))
            finally:
                client.close()
            self._legs(engine, group, inprocess.WHERE)

    def _note_list(self, server: str, version: str | None) -> None:
        """Says where options are read by the list of an older version."""
        keys = load_or_older(server, version)
        if not keys.is_of(version):
            told = f"no list of the options of {keys.product} {version}: they are read by that of {keys.version}"
            self.report.facts["options_by_list_of"] = keys.version
            self._observer(Note(f"{told}; the installed library says which there are"))

    @contextmanager
    def _up(self, engine: Engine, where: str) -> Iterator[EngineGroup]:
        work = self._settings.out / where.replace(" ", "_")
        work.mkdir(exist_ok=True)
        benchmark = benchmarks.get(BENCHMARK, self._place.pack)
        with engine_up(engine, benchmark, (), name=SYSTEM, work=work, observer=self._observer) as group:
            yield group

    def _legs(self, engine: Engine, group: EngineGroup, where: str) -> None:
        if self._left_s() < _LEGS_S:
            self._add(Finding(where, "legs", "are short legs VALID?", not_asked(self._hurry())))
            return
        self._add(*short_legs(engine, group, where, self._settings.legs, self._place, self._observer))

    def _memory(self, before: tuple[Card, ...] | str, options: Mapping[str, object] | None) -> Outcome:
        return judge_memory(before, read_cards(), weights_bytes(self._settings.folder()), _fraction(options or {}))

    def _started(self, where: str, info: EngineInfo, seconds: float) -> None:
        self._slowest_start_s = max(self._slowest_start_s, seconds)
        self.report.facts[where] = asdict(info) | {"started_after_s": round(seconds, 1)}
        versions_told = ", ".join(f"{name} {version}" for name, version in info.versions.items())
        self._add(Finding(where, "starts", _STARTS, passed(f"after {seconds:.0f} s: {versions_told}")))

    def _frameworks(self) -> dict[str, str]:
        told: dict[str, str] = {}
        for where in (served.WHERE, inprocess.WHERE):
            facts = self.report.facts.get(where)
            told |= dict(facts["versions"]) if isinstance(facts, dict) else {}
        return told

    def _hurry(self) -> str:
        budget_s = self._settings.budget_s
        return (
            f"{max(0.0, self._left_s()):.0f} of {budget_s:.0f} s are left, one start took {self._slowest_start_s:.0f}; "
            "give more with --budget_s, or ask one of the --parts alone"
        )

    def _left_s(self) -> float:
        return self._deadline - time.monotonic()

    def _add(self, *findings: Finding) -> None:
        for finding in findings:
            self.report.findings.append(finding)
            outcome = finding.outcome
            self._observer(Note(f"{finding.where}: {finding.name}: {outcome.status.value}: {outcome.seen}"))
        self._write()

    def _write(self) -> None:
        write_atomically(self._settings.out / REPORT, self.report.to_json())


def _fraction(options: Mapping[str, object]) -> float | None:
    cache = options.get("kv_cache_config")
    fraction = cache.get("free_gpu_memory_fraction") if isinstance(cache, dict) else None
    return fraction if isinstance(fraction, float) else None


def _told(found: Serving) -> Outcome:
    """``serving`` has compared what the server told with what was asked; here is how much that was."""
    told = found.info.settings.get("told")
    if not told:
        return not_asked(f"the {found.server} server tells none of its settings")
    return passed(f"the server tells {told}")
