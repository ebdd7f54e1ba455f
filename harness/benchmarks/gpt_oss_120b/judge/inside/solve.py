"""Run by confine.py: compiles a solution, and runs it on one input after the other as LiveCodeBench does.

It reads frames from standard input (four bytes of length, then that many) and answers each on standard output: first
the solution, {"code", "function"}; then inputs, as text behind one byte. Expected outputs never come here.

What a solution meets is LiveCodeBench's world, oddities included (lcb_runner/evaluation/testing_util.py): star imports
before the code; a program's top level becomes the body of a function, its imports staying outside; ``sys.stdin`` is an
object without iteration whose ``buffer.readline`` always gives the first line; functions that change files or processes
are gone. Another judge would give other verdicts, and the reference's is what counts.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import decimal
import fractions
import io
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, BinaryIO, TextIO

STARRED = (
    *("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics"),
    *("itertools", "functools", "operator", "io", "sys", "json", "builtins", "typing"),
)
IMPORTED = (
    *("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics"),
    *("itertools", "functools", "operator", "io", "sys", "json"),
)
RECURSION_LIMIT = 50_000
INT_DIGITS = 50_000
PRELUDE = (
    "".join(f"from {name} import *\n" for name in STARRED)
    + "".join(f"import {name}\n" for name in IMPORTED)
    + f"sys.setrecursionlimit({RECURSION_LIMIT})\n"
)
PROGRAM = "_the_program"
GONE_FROM_OS = (
    *("kill", "system", "putenv", "remove", "removedirs", "rmdir", "fchdir", "setuid", "fork", "forkpty", "killpg"),
    *("rename", "renames", "truncate", "replace", "unlink", "fchmod", "fchown", "chmod", "chown", "chroot"),
    *("lchflags", "lchmod", "lchown", "getcwd", "chdir"),
)
GONE_FROM_SHUTIL = ("rmtree", "move", "chown")
GONE_MODULES = ("ipdb", "joblib", "resource", "psutil", "tkinter")
FRAME = struct.Struct(">I")


class FirstLine:
    """What ``sys.stdin.buffer`` is."""

    def __init__(self, text: str) -> None:
        self._content = text.encode()

    def read(self, *_: object) -> bytes:
        """The whole input, each time."""
        return self._content

    def readline(self, *_: object) -> bytes:
        """The first line, each time."""
        return self._content.split(b"\n")[0] + b"\n"


class Input:
    """What ``sys.stdin`` is: no iteration, lines of ``readlines`` without ends, all of it at each ``read``."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._file = io.StringIO(text)
        self.buffer = FirstLine(text)

    def read(self, *_: object) -> str:
        """The whole input, each time."""
        return self._text

    def readlines(self, *_: object) -> list[str]:
        """All lines, without their ends."""
        return self._text.split("\n")

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever StringIO has
        return getattr(self._file, name)


def redirect_by_name(stdin: TextIO, text: str) -> None:
    """The methods of the stream that was ``sys.stdin`` before: what a program has that took it by name."""
    lines = iter(text.split("\n"))
    vars(stdin).update(
        read=lambda *_: text,
        readline=lambda *_: next(lines),
        readlines=lambda *_: text.split("\n"),
    )


class Output(io.StringIO):
    """What ``sys.stdout`` is; closing it loses nothing."""

    def close(self) -> None:
        """Stays open: what was printed is still to be read."""


def main() -> None:
    """Serves one solution until there are no more inputs, or until it breaks."""
    requests, replies = take_channel()
    order = json.loads(read_frame(requests))
    if "numpy" in order["code"]:
        with contextlib.suppress(ImportError):
            import numpy  # noqa: F401 - LiveCodeBench has it before it takes away what the import needs
    take_away()
    compiler = compile_function if order["function"] else compile_program
    run: list[Callable[[str], dict[str, Any]]] = []

    def compile_it(code: str) -> dict[str, Any]:
        run.append(compiler(code, order["function"]))
        return {"compiled": True}

    intact = answer(replies, compile_it, order["code"])
    while intact and (text := read_frame(requests)):
        intact = answer(replies, run[0], text[1:].decode("utf-8", "surrogatepass"))


def answer(replies: BinaryIO, action: Callable[[str], dict[str, Any]], text: str) -> bool:
    """Does one thing for the solution and says what came of it; whether it went well."""
    try:
        body = json.dumps(action(text)).encode()
        intact = True
    except BaseException as error:  # noqa: BLE001 - a solution may raise anything, and all of it is its end
        body = json.dumps({"crash": shown(error)}).encode()
        intact = False
    replies.write(FRAME.pack(len(body)) + body)
    replies.flush()
    return intact


def take_channel() -> tuple[BinaryIO, BinaryIO]:
    """The pipes to the judge, moved out of the way; the solution's own standard streams lead nowhere."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - another object than sys.__stdin__, as there
    return requests, replies


def read_frame(source: BinaryIO) -> bytes:
    """The next frame; empty at the end."""
    head = source.read(FRAME.size)
    return source.read(FRAME.unpack(head)[0]) if len(head) == FRAME.size else b""


def shown(error: BaseException) -> str:
    """An error in one short line, whatever its own ``__str__`` does."""
    try:
        return f"{type(error).__name__}: {error}"[:200]
    except BaseException:  # noqa: BLE001 - the error is the solution's own class
        return type(error).__name__


def take_away() -> None:
    """What LiveCodeBench takes from solutions. It is no wall (confine.py is): it decides what runs there and here."""
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(INT_DIGITS)
    vars(builtins)["exit"] = sys.exit  # Made by the module site, which is not loaded here.
    vars(builtins)["quit"] = None
    for name in GONE_FROM_OS:
        setattr(os, name, None)
    for name in GONE_FROM_SHUTIL:
        setattr(shutil, name, None)
    vars(subprocess)["Popen"] = None
    vars(sys)["modules"].update(dict.fromkeys(GONE_MODULES))


def compile_program(code: str, _: str | None) -> Callable[[str], dict[str, Any]]:
    """A program from standard input to standard output. Raises whatever compiling it raises."""
    stdin = sys.stdin
    tree = ast.parse(code)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.If) and ast.unparse(last.test) == "__name__ == '__main__'":
        tree.body[-1:] = last.body
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    others = [node for node in tree.body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    function = ast.parse(f"def {PROGRAM}(): pass").body[0]
    vars(function)["body"] = others
    module = run_module("\n".join((PRELUDE, *map(ast.unparse, imports), ast.unparse(function))))

    def run(given: str) -> dict[str, Any]:
        output = Output()
        redirect_by_name(stdin, given)
        vars(sys).update(stdin=Input(given), stdout=output)
        with contextlib.suppress(SystemExit):
            module[PROGRAM]()
        return {"output": output.getvalue()}

    return run


def compile_function(code: str, name: str | None) -> Callable[[str], dict[str, Any]]:
    """A function, or a method of a class ``Solution``; arguments come as JSON, one a line."""
    module = run_module(f"{PRELUDE}\n\n{code}")
    holder = module["Solution"]() if "class Solution" in code else None
    function = module[str(name)] if holder is None else getattr(holder, str(name))

    def run(given: str) -> dict[str, Any]:
        value = function(*map(json.loads, given.split("\n")))
        return {"value": encoded(list(value) if isinstance(value, tuple) else value)}

    return run


def run_module(text: str) -> dict[str, Any]:
    """Executes a module's text; its names."""
    module = ModuleType("solution")
    exec(compile(text, "<solution>", "exec", dont_inherit=True), vars(module))  # noqa: S102 - this is what it is for
    return vars(module)


def encoded(value: Any) -> Any:  # noqa: ANN401 - JSON, from anything
    """A value in JSON from which one that is equal to it can be made outside; ``{"other": type}`` of any other kind.

    Numbers, objects and what has no name in JSON are of the form ``{kind: content}``. A class of the solution's own
    that calls itself equal to everything is of another kind.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return {"int": hex(value)}
    if isinstance(value, float):
        return {"float": float(value).hex()}
    if isinstance(value, list):
        return [encoded(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: encoded(item) for key, item in value.items()}}
    if isinstance(value, (decimal.Decimal, fractions.Fraction)):
        return {type(value).__name__: str(value)}
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return encoded(value.item())
    return {"other": type(value).__name__}


if __name__ == "__main__":
    main()
