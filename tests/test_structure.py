"""The shape of the project: which room may import which, what loads when, what is said where."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from harness import env
from harness.cli.main import VERBS
from tests.harness_process import ROOT

PACKAGE = ROOT / "harness"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Imports only go down. Rooms of one floor may use each other only where FRIENDS says so.
FLOORS = {
    "errors": 1,
    "env": 1,
    "events": 1,
    "rules": 2,
    "logs": 2,
    "config": 3,
    "ledger": 3,
    "engines": 4,
    "machine": 4,
    "benchmarks": 5,
    "gate": 5,
    "clients": 6,
    "serve": 6,
    "runs": 7,
    "submission": 7,
    "report": 7,
    "cli": 8,
}
FRIENDS: set[tuple[str, str]] = set()

# Libraries that a laptop need not have, and the modules whose trade they are.
HEAVY = {
    "torch": {
        "engines/sampler.py",
        "engines/slots.py",
        "engines/torch_attention.py",
        "engines/torch_cpu.py",
        "engines/torch_deepseek.py",
        "engines/torch_head.py",
        "engines/torch_model.py",
        "engines/torch_vision.py",
    },
    "transformers": {
        "engines/slots.py",
        "engines/torch_attention.py",
        "engines/torch_cpu.py",
        "engines/torch_model.py",
    },
    "openai_harmony": set(),
    "tensorrt_llm": set(),
    "starlette": {"serve/app.py", "serve/line.py"},
    "uvicorn": {"serve/line.py", "serve/server.py"},
    "matplotlib": {"report/page/cards.py", "report/page/paper.py", "report/page/plots.py", "report/page/svg.py"},
    "jinja2": {"report/page/render.py"},
    "markupsafe": {"report/page/render.py", "report/page/svg.py"},
    "mlperf_loadgen": {"clients/loadgen/sut.py", "clients/loadgen/worker.py"},
}


def room(path: Path) -> str | None:
    """The room a module lies in; None for the package's own ``__init__`` and ``__main__``."""
    inside = path.relative_to(PACKAGE)
    name = inside.parts[0].removesuffix(".py")
    return None if name.startswith("__") else name


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run when a module is imported: all but what lies in functions and under TYPE_CHECKING."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from at_import(child)


def imported(node: ast.AST) -> Iterator[str]:
    """The dotted names that one statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module is not None:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports(path: Path) -> set[str]:
    """Everything a module imports, whenever it does."""
    return {name for node in ast.walk(tree(path)) for name in imported(node)}


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def test_every_room_has_a_floor() -> None:
    rooms = {found for path in MODULES if (found := room(path))}
    assert rooms <= set(FLOORS)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_only_go_down(path: Path) -> None:
    here = room(path)
    if here is None:
        return
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "harness" or len(parts) == 1 or parts[1] == here or parts[1] not in FLOORS:
            continue
        allowed = FLOORS[parts[1]] < FLOORS[here] or (here, parts[1]) in FRIENDS
        assert allowed, f"{name_of(path)} (floor {FLOORS[here]}) imports {name} (floor {FLOORS[parts[1]]})"


def test_no_import_is_relative() -> None:
    for path in MODULES:
        assert not [node for node in ast.walk(tree(path)) if isinstance(node, ast.ImportFrom) and node.level]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_heavy_libraries_are_imported_at_the_top_only_where_they_are_the_trade(path: Path) -> None:
    top = {name.split(".")[0] for node in at_import(tree(path)) for name in imported(node)}
    wrong = {library for library, at_home in HEAVY.items() if library in top and name_of(path) not in at_home}
    assert not wrong


def test_the_heavy_modules_named_here_are_there() -> None:
    assert {name for at_home in HEAVY.values() for name in at_home} <= {name_of(path) for path in MODULES}


def test_no_verb_loads_what_only_engines_and_tokenizers_need() -> None:
    """In an interpreter that refuses those libraries: the core is installed without them."""
    program = f"""
import importlib, sys
for name in {sorted(HEAVY)!r}:
    sys.modules[name] = None
for verb in ["main", *{sorted(VERBS)!r}]:
    importlib.import_module(f"harness.cli.{{verb}}")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    if "mlperf_loadgen" in done.stderr:
        pytest.fail(f"a verb loads LoadGen in the harness's own process:\n{done.stderr}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(tree(path))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nothing_is_printed_but_by_the_console(path: Path) -> None:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"print", "breakpoint", "input"}, f"line {node.lineno}"


# -- the environment ---------------------------------------------------------------------------------------------------

PASSED_ON = {"PATH", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "OMP_NUM_THREADS"}
"""Not read to decide anything: handed to, or kept from, processes that are started."""


def environment_names(path: Path) -> set[str]:
    """The names, as literals, with which a module looks into an environment."""
    names = set()
    for node in ast.walk(tree(path)):
        if (isinstance(node, ast.Call) and "environ" in ast.dump(node.func)) or (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "getenv"
        ):
            names |= {arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)}
        if isinstance(node, ast.Subscript) and "environ" in ast.dump(node.value):
            names |= {node.slice.value} if isinstance(node.slice, ast.Constant) else set()
    return names


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_environment_variable_is_declared(path: Path) -> None:
    declared = {variable.name for variable in env.ALL}
    assert environment_names(path) <= declared | PASSED_ON


def test_all_lists_every_variable() -> None:
    declared = {value for value in vars(env).values() if isinstance(value, env.Variable)}
    assert declared == set(env.ALL)
    assert all(variable.meaning for variable in env.ALL)


# -- the repository ----------------------------------------------------------------------------------------------------


@cache
def tracked() -> tuple[Path, ...]:
    """The files that git tracks, or skips visibly where this is no checkout."""
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, cwd=ROOT, check=False)
    if listed.returncode:
        pytest.skip("no git checkout: nothing says which files are the project's")
    return tuple(ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file())


SOMEBODYS = re.compile(r"(?<![\w/.])/(?:work|home/(?!user\b|me\b|you\b)\w+|Users/\w+|root|mnt/\w+)/[\w.]")
MADE_UP = {"/home/zaphod/runs", "/home/arthur/models", "/root/work"}
"""Paths of nobody, which the search for secrets is to find."""


def test_no_path_of_a_developers_machine_is_tracked() -> None:
    found = []
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if SOMEBODYS.search(line) and not any(made_up in line for made_up in MADE_UP):
                found.append(f"{name}:{number}: {line.strip()[:80]}")
    assert not found, "\n".join(found)


def test_tests_mirror_the_package() -> None:
    for folder in (ROOT / "tests").iterdir():
        if folder.is_dir() and list(folder.glob("test_*.py")):
            assert (PACKAGE / folder.name).is_dir() or folder.name in ("e2e", "systems"), folder


def test_make_help_lists_every_verb() -> None:
    done = subprocess.run(
        ["make", "--no-print-directory", "help"], capture_output=True, text=True, cwd=ROOT, check=True
    )
    listed = {line.split()[1] for line in done.stdout.splitlines() if line.split()[:1] == ["make"]}
    assert {*VERBS, "demo", "test", "lint", "bench", "help"} <= listed


def test_every_verb_of_make_is_one_of_the_programs() -> None:
    called = set(re.findall(r"-m harness (\w+)", (ROOT / "Makefile").read_text()))
    assert called == set(VERBS)
