"""The whole check, in order: the server, legs through it, the engine in process, legs through that."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Final

from harness import rules
from harness.engines.base import EngineInfo
from harness.engines.group import EngineGroup, Member, start_group
from harness.engines.launch.weights import made
from harness.engines.start import EngineSpec
from harness.errors import HarnessError, Interrupted
from harness.events import Note, Observer
from harness.ledger.store import write_atomically
from harness.machine import capture
from harness.runs.gpu_check import inprocess, served
from harness.runs.gpu_check.asker import Asker
from harness.runs.gpu_check.inprocess import Asked
from harness.runs.gpu_check.legs import SYSTEM, LegPlace, short_legs
from harness.runs.gpu_check.memory import judge_memory, read_cards, weights_bytes
from harness.runs.gpu_check.report import Finding, Outcome, Report, failed, not_asked, passed
from harness.runs.gpu_check.served import Served
from harness.runs.gpu_check.settings import CheckSettings
from harness.runs.identity import versions
from harness.runs.servers import Serving, http_settings, serving

REPORT: Final = "gpu_check.json"
_START_S: Final = 400.0
_MEMORY: Final = "does loading take the memory that is expected?"
_GOES_ON: Final = "does it go on to the end of the check?"
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
        with serving(engine, name=SYSTEM, folder=settings.out, observer=self._observer) as found:
            self._started(served.WHERE, found.info, time.monotonic() - started)
            fraction = _fraction(settings.started_with or {})
            weights = weights_bytes(made(engine.checkpoint))
            taken = (
                not_asked("it ran before")
                if settings.endpoint
                else judge_memory(before, read_cards(), weights, fraction)
            )
            self._add(Finding(served.WHERE, "memory", _MEMORY, taken))
            self._add(Finding(served.WHERE, "settings", "are the settings those that were asked for?", _told(found)))
            asker = Asker(found.endpoints[0][1], found.model)
            info = found.info
            self._add(
                *served.ask_all(
                    Served(asker, settings.server, settings.started_with, info.vocab_size, info.max_total_tokens)
                )
            )
            spec = EngineSpec("http", http_settings(found, engine))
            with self._group(spec, "client.log", found.ending) as group:
                self._legs(served.WHERE, group)

    def _in_process(self) -> None:
        settings = self._settings
        if self._left_s() < self._slowest_start_s + 60:
            why = f"{self._left_s():.0f} of {settings.budget_s:.0f} s are left and one start took "
            why += f"{self._slowest_start_s:.0f}; --parts=in_process asks this alone"
            self._add(Finding(inprocess.WHERE, "starts", _STARTS, not_asked(why)))
            return
        folder = made(settings.http_engine().checkpoint)
        before, started = read_cards(), time.monotonic()
        with self._group(settings.own_spec(folder), "engine.log") as group:
            self._started(inprocess.WHERE, group.info, time.monotonic() - started)
            options = {} if settings.server == "torch" else settings.own_options()
            taken = judge_memory(before, read_cards(), weights_bytes(folder), _fraction(options))
            self._add(Finding(inprocess.WHERE, "memory", _MEMORY, taken))
            client = group.connect()
            try:
                self._add(*inprocess.ask_all(Asked(client, options)))
            finally:
                client.close()
            self._legs(inprocess.WHERE, group)

    def _legs(self, where: str, group: EngineGroup) -> None:
        engine = self._settings.http_engine() if where == served.WHERE else self._settings.own_engine()
        self._add(*short_legs(engine, group, where, self._settings.legs, self._place, self._observer))

    @contextmanager
    def _group(self, spec: EngineSpec, log: str, behind: object = None) -> Iterator[EngineGroup]:
        ending = behind if callable(behind) else None
        with start_group([Member(spec)], log=self._settings.out / log, timeout_s=_START_S, behind=ending) as group:
            yield group

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


def _fraction(options: object) -> float | None:
    cache = options.get("kv_cache_config") if isinstance(options, dict) else None
    fraction = cache.get("free_gpu_memory_fraction") if isinstance(cache, dict) else None
    return fraction if isinstance(fraction, float) else None


def _told(found: Serving) -> Outcome:
    """``serving`` has compared what the server told with what was asked; here is how much that was."""
    told = found.info.settings.get("told")
    if not told:
        return not_asked(f"the {found.server} server tells none of its settings")
    return passed(f"the server tells {told}")
