"""The process that one LoadGen run lives in: ``python -m harness.clients.loadgen.worker JOB.json``.

LoadGen keeps state that a second run in the same process would inherit, waits for ever for a sample that is not
completed, and leaves the interpreter in a state that crashes at exit when a callback raised. So: one run a process,
StartTest on a thread of its own while the main thread keeps signals and the watchdog, and ``os._exit`` at the end.

Where samples are trajectories an engine of trajectories stands between the SUT and the engine, and the turns are kept
beside the samples.

Standard output carries a JSON line a second or so (:mod:`~harness.clients.loadgen.telling`); everything else goes to
standard error.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import traceback
from collections import Counter
from pathlib import Path
from types import FrameType

import mlperf_loadgen as loadgen
import numpy as np

from harness.clients.loadgen.interpreter import make_interpreter_quick
from harness.clients.loadgen.job import OUTCOME, LegJob, Outcome
from harness.clients.loadgen.library import TrajectoryLibrary, open_library
from harness.clients.loadgen.live import LiveFigures
from harness.clients.loadgen.record import FrozenRecord
from harness.clients.loadgen.sut import LoadGenSut
from harness.clients.loadgen.telling import ProgressPipe, Teller
from harness.clients.loadgen.trajectories import TrajectoryEngine
from harness.clients.loadgen.turn_record import FrozenTurns, TurnRecord
from harness.engines.base import Engine
from harness.engines.inside import InsideEngine
from harness.engines.replicas import connect
from harness.engines.start import EngineSpec, build_core
from harness.errors import EXIT_OK, EngineDied, HarnessError, Interrupted, MissingError, RunBroke
from harness.ledger.record import Counts, FailedSample
from harness.ledger.samples import write_samples
from harness.ledger.store import LOGS, SAMPLES, USER_CONF, write_atomically
from harness.ledger.turns import TURN_REPLIES, TURNS, write_turns

_ENGINE_DIED = "engine_died"
_KEPT_FAILURES = 100
_TICK_S = 0.25
_PATIENCE_S = 30.0
_COUNTERS_S = 2.0


class Worker:
    """One LoadGen run, from the job to the outcome."""

    def __init__(self, job: LegJob, progress: ProgressPipe | None) -> None:
        self.job = job
        self._progress = progress
        self.folder = Path(job.folder)
        self.library = open_library(job)
        self.engine: Engine = _engine(job)
        self.trajectories: TrajectoryEngine | None = None
        self.turns: TurnRecord | None = None
        if isinstance(self.library, TrajectoryLibrary) and job.replay is not None:
            self.turns = TurnRecord(self.folder / TURN_REPLIES)
            self.trajectories = TrajectoryEngine(self.engine, self.library.store, job.replay, self.turns)
            self.engine = self.trajectories
        self._counted_before = self.engine.counters(_PATIENCE_S)
        self.loaded_rows = 0
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._stalled = ""
        """What the watchdog found, where it did."""
        self.sut = LoadGenSut(
            self.engine,
            self.library.prompts,
            job.workload(),
            min_answer_tokens=job.min_answer_tokens,
            token_latencies=job.tells_first_tokens,
            on_broken=self._break,
            logged=job.logged,
        )

    def run(self) -> Outcome:
        """Runs the test to its end, whatever that is, and writes samples.arrow and outcome.json."""
        signal.signal(signal.SIGINT, self._interrupted)
        signal.signal(signal.SIGTERM, self._interrupted)
        self.sut.start()
        threading.Thread(target=self._test, name="StartTest", daemon=True).start()
        self._watch()
        self.sut.close()
        if self._error is not None:
            _log("".join(traceback.format_exception(self._error)))
        record = self.sut.record.frozen()
        if self._stalled:
            self._error = EngineDied(f"{self._stalled}: {self._owed(record)}")
        if isinstance(self._error, EngineDied):
            record = record.with_the_rest_failed(_ENGINE_DIED, _sentence(self._error))
        turns = None if self.trajectories is None else self._frozen_turns(self.trajectories, record)
        outcome = self._outcome(record, turns, self._counters())
        self._write(record, turns, outcome)
        return outcome

    # -- the test ---------------------------------------------------------------------------------------------------

    def _test(self) -> None:
        try:
            settings = self._settings()
            logs = loadgen.LogSettings()
            logs.log_output.outdir = str(self.folder / LOGS)
            logs.log_output.copy_summary_to_stdout = False
            logs.enable_trace = False
            sut = loadgen.ConstructFastSUT(self.sut.issue, self.sut.flush)
            library = loadgen.ConstructQSL(self.job.rows, self.job.rows, self._load, self._unload)
            loadgen.StartTestWithLogSettings(sut, library, settings, logs, self.job.audit)
        except Exception as error:  # noqa: BLE001 - must reach the main thread, which reports it
            self._break(error)
        self._ended.set()

    def _settings(self) -> loadgen.TestSettings:
        settings = loadgen.TestSettings()
        code = settings.FromConfig(str(self.folder / USER_CONF), self.job.model, self.job.scenario, 1)
        if code != 0:
            raise RunBroke(f"LoadGen refused user.conf with code {code}", where=self.folder / USER_CONF)
        settings.scenario = getattr(loadgen.TestScenario, self.job.scenario)
        settings.mode = getattr(loadgen.TestMode, self.job.mode)
        return settings

    def _load(self, rows: list[int]) -> None:
        """LoadGen's load callback. An exception may not reach it."""
        try:
            self.loaded_rows += len(rows)
            self.library.load(rows)
        except Exception as error:  # noqa: BLE001 - LoadGen would be left broken and silent
            self._break(error)

    def _unload(self, rows: list[int]) -> None:
        """LoadGen's unload callback."""
        try:
            self.library.unload(rows)
        except Exception as error:  # noqa: BLE001 - LoadGen would be left broken and silent
            self._break(error)

    # -- its end ----------------------------------------------------------------------------------------------------

    def _break(self, error: BaseException) -> None:
        if self._error is None:
            self._error = error
        self._ended.set()

    def _interrupted(self, signum: int, frame: FrameType | None) -> None:
        self._break(Interrupted(f"stopped by signal {signum}"))

    def _watch(self) -> None:
        live = LiveFigures(self.sut.record, self.turns, scenario=self.job.scenario)
        teller = None if self._progress is None else Teller(self._progress, lambda: live.look(self.sut.completed))
        while not self._ended.wait(_TICK_S):
            stalled_s = (self.trajectories or self.sut).stalled_s()
            if stalled_s > self.job.watchdog_s:
                self._stalled = f"no token came for {stalled_s:.0f} s while samples were outstanding"
                self._break(EngineDied(self._stalled))
            if teller is not None:
                teller.turn()

    # -- what is kept -----------------------------------------------------------------------------------------------

    def _counters(self) -> dict[str, int]:
        """What the engine counted during the run. None of what was measured depends on it."""
        try:
            counted = self.engine.counters(_COUNTERS_S)  # not for long: it may be what broke, and ^C ends waiting soon
        except EngineDied as error:
            _log(f"the engine's counters are not known: {error}\n")
            return {}
        return {name: count - self._counted_before.get(name, 0) for name, count in counted.items()}

    def _owed(self, record: FrozenRecord) -> str:
        """How many samples each replica has not answered."""
        names = self.engine.info().replicas
        owed = Counter(self.engine.replicas_of(record.outstanding()).tolist())
        return ", ".join(
            f"replica {names[replica]} owes {count}" if replica >= 0 else f"{count} were not begun"
            for replica, count in sorted(owed.items(), reverse=True)
        )

    def _frozen_turns(self, trajectories: TrajectoryEngine, record: FrozenRecord) -> FrozenTurns:
        """The turns as they stand at the end, their replies written out."""
        try:
            if isinstance(self._error, EngineDied):
                trajectories.fail_the_rest(_ENGINE_DIED, _sentence(self._error))
            trajectories.record.close()
        except MissingError as error:  # a full disk: the columns may find room yet
            self._break(error)
        return trajectories.turns(record.rows, record.failed_places())

    def _outcome(self, record: FrozenRecord, turns: FrozenTurns | None, engine_counters: dict[str, int]) -> Outcome:
        issued, answered = len(record.ids), len(record.done_ids)
        kept = record.failures[:_KEPT_FAILURES]
        rows = record.rows_of([failure.number for failure in kept])
        failures = [
            FailedSample(index=row, kind=failure.kind, message=failure.message)
            for row, failure in zip(rows, kept, strict=True)
        ]
        counts = Counts(
            issued=issued,
            answered=answered,
            failed=len(record.failures),
            outstanding=issued - answered - len(record.failures),
            output_tokens=int(np.maximum(record.tokens, 0).sum()),
        )
        return Outcome(
            counts=counts,
            turns=None if turns is None else turns.counts(),
            failures=failures,
            failure_kinds=dict(Counter(failure.kind for failure in record.failures)),
            error=None if self._error is None else _sentence(self._error),
            exit_code=_exit_code(self._error),
            engine_died=isinstance(self._error, EngineDied),
            library_rows=self.job.rows,
            loaded_rows=self.loaded_rows,
            engine_counters=engine_counters,
        )

    def _write(self, record: FrozenRecord, turns: FrozenTurns | None, outcome: Outcome) -> None:
        columns = record.by_sample(self.library.prompt_tokens)
        if turns is not None:
            columns["prompt_tokens"] = turns.prompt_tokens()
        replicas = self.engine.replicas_of(record.ids)
        write_samples(self.folder / SAMPLES, columns, replicas, list(self.engine.info().replicas))
        if turns is not None:
            write_turns(self.folder / TURNS, turns.columns)
        write_atomically(self.folder / OUTCOME, outcome.model_dump_json(indent=1) + "\n")


def _engine(job: LegJob) -> Engine:
    if job.inside is None:
        return connect(job.engine)
    return InsideEngine(build_core(EngineSpec.parse(job.inside)))


def _log(text: str) -> None:
    """Logs what there is room for: a disk that is full must not cost what was measured as well."""
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _sentence(error: BaseException) -> str:
    """What went wrong; where and how to mend it are said by the harness, and stand in the log."""
    return error.what if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"


def _exit_code(error: BaseException | None) -> int:
    if error is None:
        return EXIT_OK
    return error.exit_code if isinstance(error, HarnessError) else RunBroke.exit_code


def _progress_pipe() -> ProgressPipe:
    """What was standard output. Whatever else prints there, LoadGen for one, lands in the log from now on."""
    pipe = ProgressPipe(os.dup(1))
    os.dup2(2, 1)
    return pipe


def main(argv: list[str]) -> int:
    """Runs the job in the file that ``argv`` names."""
    make_interpreter_quick()
    job = LegJob.model_validate_json(Path(argv[0]).read_bytes())
    try:
        pipe = _progress_pipe()
        return Worker(job, pipe if job.progress else None).run().exit_code
    except HarnessError as error:
        _log(f"{error}\n")
        return error.exit_code
    except Exception:  # noqa: BLE001 - os._exit below would swallow it
        _log(traceback.format_exc())
        return RunBroke.exit_code


if __name__ == "__main__":
    code = main(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code)  # LoadGen's own teardown aborts the interpreter after a broken test
