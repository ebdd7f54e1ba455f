"""Which programs an answer runs: what the inline score compares.

The names, their spellings and what is no name of a program are the benchmark's and not ours: those that
mlcommons/endpoints scores by (ea332753, ``evaluation/scoring.py``).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

_SPELLINGS: Final = {
    "apt": "apt apt-get",
    "awk": "awk gawk",
    "cat": "cat less more",
    "curl": "curl wget",
    "find": "find locate",
    "grep": "grep egrep fgrep rg ag",
    "pip": "pip pip3",
    "python": "python python2 python3 py",
    "source": "source .",
    "sphinx": "sphinx-build sphinx-quickstart",
}
_OWN_NAMES: Final = (
    "pytest pylint cython make conda head tail wc diff sed tr sort uniq cut ls xargs cp mv rm mkdir touch tee which"
    " alias unset export git true false timeout date yum"
)
PROGRAMS: Final = {
    **{name: name for name in _OWN_NAMES.split()},
    **{spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings.split()},
}
"""The programs that count, by each way to call them; all others (cd, echo, npm) do not."""
_WRAPPERS: Final = frozenset({"env", "time", "nice", "sudo", "exec", "command"})
_TOOL: Final = "bash"
_ARGUMENTS: Final = ("command", "cmd")

_QUOTED: Final = re.compile(
    r"""
    ' [^']* '
    | " (?: [^"\\] | \\. )* "
    | ` [^`]* `
    """,
    re.VERBOSE,
)
_END: Final = re.compile(r"[|;\n]|&&")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_VERSION: Final = re.compile(r"(?:\.\d+){1,2}$")


def programs(tool_calls: object) -> Counter[str]:
    """How often the calls of a message run each program. Whatever is no call of bash's runs none; nothing raises."""
    calls = tool_calls if isinstance(tool_calls, list | tuple) else ()
    return Counter(name for call in calls for name in _of_script(_script(call)))


def _script(call: object) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or function.get("name") != _TOOL:
        return ""
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        arguments = _json(arguments)
    if not isinstance(arguments, dict):
        return ""
    script = next((arguments[name] for name in _ARGUMENTS if arguments.get(name)), "")
    return script if isinstance(script, str) else ""


def _json(text: str) -> object:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):  # A model's own words: they may be anything.
        return None
    return found


def _of_script(script: str) -> Iterator[str]:
    for stage in _END.split(_QUOTED.sub(" ", script)):
        called = next((word for word in stage.split() if word not in _WRAPPERS and not _ASSIGNMENT.match(word)), None)
        if called is None:
            continue
        name = PROGRAMS.get(_VERSION.sub("", called.rpartition("/")[2].lower()))
        if name is not None:
            yield name
