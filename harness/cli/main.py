"""Finds the verb, runs it, and turns what it raises into a message and an exit code."""

from __future__ import annotations

import errno
import importlib
import math
import signal
import sys
import time
from types import FrameType

from rich.markup import escape

from harness.cli.console import ERR, OUT, print_what_can_be_printed
from harness.errors import EXIT_OK, HarnessError, Interrupted, MissingError, UnknownName

VERBS = {
    "doctor": "hold this machine against what runs need, and say how to mend it: --systems=… --benchmarks=…",
    "plan": "size legs before they run: samples, time, early stopping, disk (--json); options as run_harness",
    "make_dataset": "make a stand-in data set in exactly the reference's files",
    "fetch_dataset": "fetch the benchmark's own data set, or verify it where you put it (--verify)",
    "serve": "serve an engine of ours as trtllm-serve does, with faults on demand: --engine=torch --tiny_gpt_oss",
    "run_llm_server": "start the servers of a benchmark's engine and keep them until ^C (--dry-run prints commands)",
    "check_gpu": "on a machine with a GPU: ask a server and an engine in process what no other machine can show",
    "run_harness": "run legs through LoadGen or mlcommons' client: RUN_ARGS='--systems=… --benchmarks=… --scenarios=…'",
    "find_target_qps": "find the highest rate of one row whose full run is VALID (--write keeps it in the YAML)",
    "run_audit_test07": "run the audit TEST07 (is it as accurate when its speed is measured?), options as run_harness",
    "run_audit_test09": "run the audit TEST09 (are the answers as long as the model's are?), options as run_harness",
    "status": "show the runs there are: state, verdict, result, folder",
    "system": "show what was read of this machine and what is still to be said",
    "submission": "lay out the submission tree from finished runs",
    "report": "one HTML file of a results folder or a tree, with plots: --input=… --compare=… --out=…",
    "check_submission": "check a tree: our gate, and the official checker where there is a clone",
    "compare": "put two results folders, trees or runs beside each other: compare A B (--json, --fail_below PERCENT)",
}

_WINDING_DOWN_S = 30.0
_MACHINE_SAYS_NO = {
    errno.EACCES,
    errno.EDQUOT,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.ENOSPC,
    errno.EPERM,
    errno.EROFS,
}
"""What a disk, a limit or a permission does to any line of ours. Other OSErrors are faults of the harness."""


def main(argv: list[str]) -> int:
    """Runs ``argv[0]`` with the rest of ``argv`` and returns the exit code."""
    print_what_can_be_printed()
    if not argv or argv[0] in {"-h", "--help", "help"}:
        _help()
        return EXIT_OK
    verb, rest = argv[0], argv[1:]
    try:
        _listen_to_signals()
        if verb not in VERBS:
            raise UnknownName("verb", verb, VERBS)
        code: int = importlib.import_module(f"harness.cli.{verb}").run(rest)
    except HarnessError as error:
        return _tell(error)
    except OSError as error:
        if error.errno not in _MACHINE_SAYS_NO:
            raise
        return _tell(MissingError(f"the machine says no: {error.strerror}", where=error.filename))
    except KeyboardInterrupt:
        ERR.print("[bold red]interrupted[/]; finished runs are as they were")
        return Interrupted.exit_code
    return code


def _tell(error: HarnessError) -> int:
    ERR.print(f"[bold red]error:[/] {escape(str(error))}")
    return error.exit_code


class _Stop:
    """Raises KeyboardInterrupt for the first signal; one more would cut off the writing of what was measured.

    That takes seconds. Whoever still waits after ``_WINDING_DOWN_S`` may ask again.
    """

    def __init__(self) -> None:
        self._since = -math.inf

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._since > _WINDING_DOWN_S:
            self._since = now
            raise KeyboardInterrupt


def _listen_to_signals() -> None:
    """A scheduler's SIGTERM and a closed terminal's SIGHUP end a verb as ^C does: what was measured is kept and marked.

    What the starter wants ignored (nohup) stays ignored.
    """
    stop = _Stop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)


def _help() -> None:
    OUT.print("usage: python -m harness VERB [options]   (make VERB does the same)\n", markup=False)
    width = max(map(len, VERBS))
    for verb, meaning in VERBS.items():
        OUT.print(f"  {verb:<{width}}  {escape(meaning)}")
    OUT.print("\npython -m harness VERB --help shows a verb's options")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
