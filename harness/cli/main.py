"""Finds the verb, runs it, and turns what it raises into a message and an exit code."""

from __future__ import annotations

import importlib
import signal
import sys
from types import FrameType

from rich.markup import escape

from harness.cli.console import ERR, OUT
from harness.errors import EXIT_OK, HarnessError, Interrupted, UnknownName

VERBS = {
    "make_dataset": "make a stand-in data set in exactly the reference's files",
    "run_harness": "run legs through LoadGen: RUN_ARGS='--systems=… --benchmarks=… --scenarios=… --test_mode=…'",
    "status": "show the runs there are: state, verdict, result, folder",
    "system": "show what was read of this machine and what is still to be said",
    "submission": "lay out the submission tree from finished runs",
    "check_submission": "check a tree: our gate, and the official checker where there is a clone",
}


def main(argv: list[str]) -> int:
    """Runs ``argv[0]`` with the rest of ``argv`` and returns the exit code."""
    if not argv or argv[0] in {"-h", "--help", "help"}:
        _help()
        return EXIT_OK
    verb, rest = argv[0], argv[1:]
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        if verb not in VERBS:
            raise UnknownName("verb", verb, VERBS)
        code: int = importlib.import_module(f"harness.cli.{verb}").run(rest)
    except HarnessError as error:
        ERR.print(f"[bold red]error:[/] {escape(str(error))}")
        return error.exit_code
    except KeyboardInterrupt:
        ERR.print("[bold red]interrupted[/]; finished runs are as they were")
        return Interrupted.exit_code
    return code


def _interrupt(signum: int, frame: FrameType | None) -> None:
    """A scheduler's SIGTERM ends a verb as ^C does: what was measured is kept and marked."""
    raise KeyboardInterrupt


def _help() -> None:
    OUT.print("usage: python -m harness VERB [options]   (make VERB does the same)\n")
    width = max(map(len, VERBS))
    for verb, meaning in VERBS.items():
        OUT.print(f"  {verb:<{width}}  {escape(meaning)}")
    OUT.print("\npython -m harness VERB --help shows a verb's options")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
