"""A program that is called as the endpoints client is, for tests of what starts and follows it."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

TOLD = {"python": "3.12.1", "version": "0.1.0", "commit": "ab" * 20, "sha256": "cd" * 32}

_PROGRAM = """
import os, shutil, signal, sys, time
def bar(done):
    sys.stderr.write(f"m:  1%|x         | {done}/120 [00:10<20:58, 10.58s/it]\\r")
    sys.stderr.flush()
if sys.argv[1] == "validate-yaml":
    sys.stderr.write(open(os.environ["FAKE_REFUSAL"]).read() if "FAKE_REFUSAL" in os.environ else "")
    sys.exit("FAKE_REFUSAL" in os.environ)
assert sys.argv[1:3] == ["benchmark", "from-config"], sys.argv
assert sys.argv[-2:] == ["--mode", "both"], sys.argv
what = os.environ.get("FAKE_CLIENT", "well")
bar(1)
if what == "fails":
    print("SetupError: no such thing", file=sys.stderr)
    sys.exit(3)
if what == "hangs":
    signal.signal(signal.SIGINT, lambda *_: (open("interrupted", "w").close(), sys.exit(130)))
    open("pid", "w").write(str(os.getpid()))
    time.sleep(600)
if what == "deaf":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open("pid", "w").write(str(os.getpid()))
    time.sleep(600)
if "FAKE_REPORT" in os.environ:
    shutil.copytree(os.environ["FAKE_REPORT"], "report")
bar(120)
"""


def make_fake_client(
    folder: Path, told: dict[str, str | None] | None = None, extra: dict[str, str | None] | None = None
) -> Path:
    """Writes the program, and the Python that it says it runs on, which answers with ``told`` when it is asked for the
    client, and with ``extra`` when it is asked for a package; returns its path.
    """
    folder.mkdir(parents=True, exist_ok=True)
    python = folder / "python-fake"
    answer = json.dumps(TOLD if told is None else told)
    of_extra = "" if extra is None else json.dumps(extra).replace("'", "'\\''")
    script = f"""
        #!/bin/sh
        case "$2/$3" in
            *probe.py/) echo '{answer}' ;;
            *probe.py/*) echo '{of_extra}' ;;
            *) exec {sys.executable} "$@" ;;
        esac
    """
    python.write_text(textwrap.dedent(script).lstrip(), encoding="utf-8")
    program = folder / "inference-endpoint"
    program.write_text(f"#!{python}\n{_PROGRAM}", encoding="utf-8")
    for path in (python, program):
        path.chmod(0o755)
    return program
