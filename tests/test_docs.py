"""What README and docs/ claim: every command, file, link, message and table in them is held against the code."""

from __future__ import annotations

import argparse
import ast
import functools
import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import pytest
from pydantic import BaseModel

from harness import env, errors, gate
from harness.cli.main import VERBS
from harness.config import BenchmarkFile, SubmissionFile, SystemFile
from harness.config import engines as config_engines
from harness.config import models as config_models
from harness.config.yaml_files import read_model
from harness.ledger import record as ledger_record

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "compliance" / "README.md", *(ROOT / "docs").glob("*.md")])
LANGUAGES = {"sh", "text", "yaml", "python"}
OF_A_SHELL = {"export", "git"}

_FENCE = re.compile(r"^ *```(\S*) ?([^\n]*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
_RULE = re.compile(
    r"(?<![A-Z-])(?:ACC|AUDIT|CLAIM|EP|HN|LG|MAN|MARK|MEAS|NET|OFFICIAL|ORIGINAL|ROW|RUN|SYS|TREE)-[A-Z][A-Z-]*[A-Z]"
)


@dataclass(frozen=True)
class Block:
    """A fenced block: the page, its language, what else stands behind the fence, and its text."""

    page: Path
    language: str
    info: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command that a page tells people to type."""

    page: Path
    text: str


def blocks() -> list[Block]:
    return [
        Block(page, language, info, textwrap.dedent(text))
        for page in PAGES
        for language, info, text in _FENCE.findall(page.read_text(encoding="utf-8"))
    ]


def code_spans() -> list[tuple[Path, str]]:
    return [(page, span) for page in PAGES for span in _CODE.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))]


def commands() -> list[Command]:
    """Lines of shell blocks, continued ones joined, and code spans that are calls of make or of the harness."""
    found = [
        Command(block.page, line)
        for block in blocks()
        if block.language == "sh"
        for line in block.text.replace("\\\n", " ").splitlines()
        if line.strip() and not line.startswith("#")
    ]
    found += [
        Command(page, span) for page, span in code_spans() if re.match(r"(make [a-z]|python -m harness \w)", span)
    ]
    return found


def shown(command: Command) -> str:
    return f"{command.page.name}: {command.text}"


@functools.cache
def tables() -> ModuleType:
    """docs/tables.py, which is a script and no module of the package."""
    spec = importlib.util.spec_from_file_location("docs_tables", ROOT / "docs" / "tables.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_extractors_find_something() -> None:
    assert {page.name for page in PAGES} >= {"README.md", "quick_start.md", "runbook.md", "run_json.md"}
    assert {block.language for block in blocks()} >= {"sh", "text", "yaml"}
    assert sum(command.text.startswith("make ") for command in commands()) > 10
    assert any("python -m harness" in command.text for command in commands())
    assert len(links()) > 10
    assert len(symptoms()) > 50
    assert any(_RULE.fullmatch(span) for _, span in code_spans())


# -- blocks ------------------------------------------------------------------------------------------------------------


def test_every_block_says_what_it_is() -> None:
    assert not [block for block in blocks() if block.language not in LANGUAGES]


@pytest.mark.parametrize(
    "block", [b for b in blocks() if b.language == "yaml"], ids=lambda b: f"{b.page.name}-{b.info}"
)
def test_a_yaml_block_is_the_file_that_it_names(block: Block, tmp_path: Path) -> None:
    path = tmp_path / block.info
    assert path.suffix == ".yaml", f"{block.page.name}: a yaml block must name its file behind the fence"
    models: dict[str, type[BaseModel]] = {"system.yaml": SystemFile, "submission.yaml": SubmissionFile}
    shutil.copytree(ROOT / "systems" / "_bases", tmp_path / "systems" / "_bases")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text, encoding="utf-8")
    read_model(path, models.get(path.name, BenchmarkFile), tmp_path)


def there(module: str, name: str) -> bool:
    """Whether a name can be imported from a module of the package; one of its own modules may not have been yet."""
    if hasattr(importlib.import_module(module), name):
        return True
    return importlib.util.find_spec(f"{module}.{name}") is not None


def test_python_blocks_are_python() -> None:
    found = [block for block in blocks() if block.language == "python"]
    assert found
    for block in found:
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("harness"):
                assert all(there(node.module, alias.name) for alias in node.names), block.text


# -- commands ----------------------------------------------------------------------------------------------------------


class Parsed(BaseException):
    """Raised in place of what a verb would do once its options are read."""


@pytest.fixture
def parse_only(monkeypatch: pytest.MonkeyPatch) -> None:
    real = argparse.ArgumentParser.parse_args

    def parse_args(parser: argparse.ArgumentParser, *args: Any, **kwargs: Any) -> NoReturn:
        parser.allow_abbrev = False  # pages write options out
        real(parser, *args, **kwargs)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_args)


def assert_parses(argv: list[str], said: str) -> None:
    """``argv`` begins with the verb."""
    assert argv[0] in VERBS, said
    try:
        importlib.import_module(f"harness.cli.{argv[0]}").run(argv[1:])
    except Parsed:
        return
    except SystemExit as refused:
        assert refused.code == 0 and "--help" in argv, f"{said}: options that the verb does not know"
        return
    raise AssertionError(f"{said}: the verb reads no options")


def harness_calls(lines: list[str]) -> Iterator[list[str]]:
    """The arguments of each ``python -m harness`` in shell lines."""
    for line in lines:
        words = shlex.split(line.partition(";")[0], comments=True)
        if "-m" in words and words[words.index("-m") + 1 : words.index("-m") + 2] == ["harness"]:
            yield words[words.index("-m") + 2 :]


def without_make() -> dict[str, str]:
    """The environment less what a make that runs these tests hands down: its flags, and the Makefile's variables."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    inherited = {"MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", *re.findall(r"^(\w+)\s*\?=", makefile, re.MULTILINE)}
    return {name: value for name, value in os.environ.items() if name not in inherited}


@pytest.mark.parametrize("command", [c for c in commands() if "make " in c.text], ids=shown)
def test_a_make_command_has_its_target_and_options(command: Command, parse_only: None) -> None:
    words = shlex.split(command.text, comments=True)
    at = words.index("make")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    known = set(re.findall(r"^(\w+)\s*\?=", makefile, re.MULTILINE))
    for word in words[:at] + words[at + 1 :]:
        if "=" in word:
            name = word.partition("=")[0]
            assert name in known | {variable.name for variable in env.ALL}, f"{shown(command)}: no variable {name}"
    dry = subprocess.run(
        ["make", "-n", *words[at + 1 :]], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**without_make(), **dict(word.split("=", 1) for word in words[:at])},
    )  # fmt: skip
    assert dry.returncode == 0, dry.stderr
    for argv in harness_calls(dry.stdout.splitlines()):
        assert_parses(argv, shown(command))


@pytest.mark.parametrize("command", [c for c in commands() if "-m harness " in c.text], ids=shown)
def test_a_call_of_the_harness_has_its_verb_and_options(command: Command, parse_only: None) -> None:
    found = list(harness_calls([command.text]))
    assert found
    for argv in found:
        assert_parses(argv, shown(command))


def test_other_commands_are_those_of_any_shell() -> None:
    for command in commands():
        words = [word for word in shlex.split(command.text, comments=True) if not re.match(r"[A-Z_]+=", word)]
        assert words[0] in OF_A_SHELL | {"make", "python"}, shown(command)


def test_exported_variables_are_read_by_the_harness_or_the_makefile() -> None:
    known = {variable.name for variable in env.ALL}
    exported = [
        name for block in blocks() if block.language == "sh" for name in re.findall(r"^export (\w+)=", block.text, re.M)
    ]
    assert exported
    assert set(exported) <= known


# -- names, links, messages --------------------------------------------------------------------------------------------


def links() -> list[tuple[Path, str]]:
    return [(page, target) for page in PAGES for target in _LINK.findall(page.read_text(encoding="utf-8"))]


def test_every_relative_link_leads_somewhere() -> None:
    for page, target in links():
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(file), f"{page.name}: {target}"


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", head.replace("&lt;", "").replace("&gt;", "")).strip() for head in heads]
    return {head.lower().replace(" ", "-") for head in plain}


def test_every_module_and_path_that_is_named_exists() -> None:
    named = 0
    for page, span in code_spans():
        if re.fullmatch(r"(harness|benchmarks|docs|tests|measurements|systems|compliance)/[\w./-]*", span):
            named += 1
            assert (ROOT / span).exists(), f"{page.name}: {span}"
        elif re.fullmatch(r"harness(\.\w+)+", span):
            named += 1
            place = ROOT.joinpath(*span.split("."))
            assert place.is_dir() or place.with_suffix(".py").is_file(), f"{page.name}: {span}"
    assert named > 20


def test_every_rule_that_is_named_is_one_of_the_gate() -> None:
    tables()._findings()  # imports every module that declares rules
    known = gate.rules()
    for page in PAGES:
        for name in _RULE.findall(page.read_text(encoding="utf-8")):
            assert name in known, f"{page.name}: {name}"


def symptoms() -> list[str]:
    """The messages that the runbook explains: code spans in the first cells of its tables; … is what varies."""
    page = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
    firsts = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    return [span for first in firsts for span in _CODE.findall(first)]


@functools.cache
def messages() -> list[str]:
    """Every text in the package, with … where a value is put in."""
    found = []
    for path in sorted((ROOT / "harness").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp):
                found.append(text_of(node))
    return found


def text_of(node: ast.AST) -> str:
    """A literal's text; … where a value is put in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text_of, node.values))
    if isinstance(node, ast.BinOp):
        return text_of(node.left) + text_of(node.right)
    return "…"


@functools.cache
def raised() -> list[str]:
    """The messages of errors that the package raises; what only passes a text on is none."""
    classes = {name for name, value in vars(errors).items() if isinstance(value, type)} | {"LedgerError", "LogError"}
    classes.remove("UnknownName")  # its first argument is no message
    found = []
    for path in sorted((ROOT / "harness").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in classes and node.args:
                found.append(text_of(node.args[0]))
    return [message for message in found if len(re.sub(r"[^a-z]", "", message)) > 4]


def test_every_error_is_explained_in_the_runbook() -> None:
    explained = symptoms()
    assert len(raised()) > 100
    missing = [message for message in raised() if not any(symptom in message for symptom in explained)]
    assert not missing, "docs/runbook.md does not explain these"


@pytest.mark.parametrize("symptom", symptoms())
def test_a_symptom_of_the_runbook_is_a_message_of_the_code(symptom: str) -> None:
    assert _RULE.fullmatch(symptom) or any(symptom in message for message in messages())


# -- tables ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "<!-- table" in page.read_text(encoding="utf-8")], ids=lambda p: p.name
)
def test_tables_are_as_the_code_has_them(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert tables().refreshed(text) == text, "run: python docs/tables.py"
    assert not tables().unwritten(text), "a meaning is still to be written"


def test_a_table_that_is_not_current_shows() -> None:
    text = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
    name = env.ALL[0].name
    old = text.replace(f"| `{name}` |", "| `GONE` |")
    assert old != text
    assert tables().refreshed(old) == text


@pytest.mark.parametrize(
    ("page", "module"),
    [
        ("adding_a_system.md", config_models),
        ("adding_a_system.md", config_engines),
        ("run_json.md", ledger_record),
    ],
    ids=lambda p: str(p),
)
def test_every_model_has_its_table(page: str, module: ModuleType) -> None:
    there = set(tables().names((ROOT / "docs" / page).read_text(encoding="utf-8")))
    wanted = {
        f"fields {module.__name__}:{name}"
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, BaseModel) and value.__module__ == module.__name__
        if not name.startswith("_")
    }
    assert wanted
    assert wanted <= there


def test_the_other_tables_are_there() -> None:
    there = {name for page in PAGES for name in tables().names(page.read_text(encoding="utf-8"))}
    assert there >= {"environment", "findings", "samples"}


def test_the_exit_codes_are_those_of_the_errors() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    raised = {
        value.exit_code
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.HarnessError)
    }
    assert told == raised | {errors.EXIT_OK}


def test_every_verb_is_explained_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert not [verb for verb in VERBS if not re.search(rf"^\| `make {verb}[` ]", text, re.MULTILINE)]
