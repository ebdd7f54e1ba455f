"""Reads BFCL's rows and checks calls with bfcl-eval: one JSON object comes in, one goes out, and the process ends.

Run by the Python of an environment in which bfcl-eval is installed, alone or with all that it names. The checker and
the conversion of functions need nothing of the rest; what they import of it is kept out, because it costs seconds and
gigabytes, or makes folders beside the package.

Asked ``{"do": "rows", "subsets": [...]}`` it answers ``{"rows": {subset: [{id, question, functions, tools, truth}]}}``,
``truth`` null where the package has none. Asked ``{"do": "check", "answers": [{subset, language, functions, calls,
truth}]}``, each call a pair of name and arguments, it answers ``{"verdicts": [{valid, why}]}``. Every answer has the
package's ``version`` and ``changed``: the files of it that were used and are not as they were installed. Where the
package is not there it answers ``{"problem": ...}``.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib
import importlib.metadata
import json
import sys
import types
from pathlib import Path
from typing import Any

PACKAGE = "bfcl_eval"
DISTRIBUTION = "bfcl-eval"
KEPT_OUT = (
    "bfcl_eval.utils",
    "bfcl_eval.model_handler.parser.java_parser",
    "bfcl_eval.model_handler.parser.js_parser",
    "tenacity",
)
ASKED = "asked-with-tools"
"""A model name, of which the checker wants to know only whether names were asked with _ for each dot."""
BROKEN_ON = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
WHY_AT_MOST = 300


class KeptOut(types.ModuleType):
    """A module whose functions can be imported and not called."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever is imported
        if name.startswith("__"):
            raise AttributeError(name)

        def refuse(*_: object, **__: object) -> None:
            raise RuntimeError(f"{self.__name__}.{name} is not to be used here")

        return refuse


def keep_out() -> None:
    """Puts stand-ins where modules of no use here would be imported."""
    for name in KEPT_OUT:
        sys.modules[name] = KeptOut(name)
    config = types.ModuleType(f"{PACKAGE}.constants.model_config")
    config.__dict__["MODEL_CONFIG_MAPPING"] = {ASKED: types.SimpleNamespace(underscore_to_dot=True)}
    sys.modules[config.__name__] = config


class Package:
    """The installed bfcl-eval, and which of its files were used."""

    def __init__(self) -> None:
        self.distribution = importlib.metadata.distribution(DISTRIBUTION)
        self.data = Path(str(self.distribution.locate_file(f"{PACKAGE}/data")))
        self.used: set[Path] = set()

    def lines(self, path: Path) -> list[Any]:
        """A file of JSON lines."""
        self.used.add(path)
        # Not splitlines(): a text in JSON may hold other ends of lines.
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]

    def changed(self) -> list[str]:
        """The files that were used, code too, and are not as the installer wrote them down."""
        recorded = {Path(str(file.locate())).resolve(): file.hash for file in self.distribution.files or ()}
        return sorted(path.name for path in self.used | _code() if not _is(path, recorded))


def _code() -> set[Path]:
    """The files of the package's modules that were imported; what is kept out has none."""
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] == PACKAGE]
    files = [getattr(module, "__file__", None) for module in modules]
    return {Path(file) for file in files if file}


def _is(path: Path, recorded: dict[Path, Any]) -> bool:
    said = recorded.get(path.resolve())
    if said is None or said.mode not in hashlib.algorithms_guaranteed:
        return False
    digest = hashlib.new(said.mode, path.read_bytes()).digest()
    return bool(base64.urlsafe_b64encode(digest).decode().rstrip("=") == said.value)


def rows(package: Package, subsets: list[str]) -> dict[str, Any]:
    """All rows of the subsets, each with its functions as tools of a chat."""
    utils = importlib.import_module(f"{PACKAGE}.model_handler.utils")
    types_of = importlib.import_module(f"{PACKAGE}.constants.type_mappings").GORILLA_TO_OPENAPI
    style = importlib.import_module(f"{PACKAGE}.constants.enums").ModelStyle.OPENAI_COMPLETIONS
    found: dict[str, Any] = {}
    for subset in subsets:
        name = f"BFCL_v4_{subset}.json"
        answers = package.data / "possible_answer" / name
        truths = {row["id"]: row["ground_truth"] for row in package.lines(answers)} if answers.exists() else {}
        found[subset] = [
            {
                "id": row["id"],
                "question": row["question"],
                "functions": row["function"],
                "tools": utils.convert_to_tool(json.loads(json.dumps(row["function"])), types_of, style),  # on a copy
                "truth": truths.get(row["id"]),
            }
            for row in package.lines(package.data / name)
        ]
    return {"rows": found}


def check(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """A verdict on each answer. One that the checker breaks on is wrong, and told."""
    checker = importlib.import_module(f"{PACKAGE}.eval_checker.ast_eval.ast_checker").ast_checker
    languages = importlib.import_module(f"{PACKAGE}.constants.enums").Language
    verdicts = []
    for answer in answers:
        calls = [{name: arguments} for name, arguments in answer["calls"]]
        try:
            said = checker(
                answer["functions"], calls, answer["truth"], languages[answer["language"]], answer["subset"], ASKED
            )
            valid, why = bool(said["valid"]), _why(said)
        except BROKEN_ON as error:
            valid, why = False, f"the checker broke on it: {type(error).__name__}: {error}"
        verdicts.append({"valid": valid, "why": "" if valid else why[:WHY_AT_MOST]})
    return {"verdicts": verdicts}


def _why(said: dict[str, Any]) -> str:
    """The kind of error and what it is, which the checker tells as a text, or as texts and objects in lists."""
    told = said.get("error")
    texts = told if isinstance(told, list) else [told]
    detail = " ".join(text if isinstance(text, str) else json.dumps(text, default=str) for text in texts if text)
    return ": ".join(filter(None, [str(said.get("error_type") or ""), detail]))


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What is answered to a request."""
    try:
        package = Package()
    except importlib.metadata.PackageNotFoundError:
        return {"problem": f"{DISTRIBUTION} is not installed"}
    keep_out()
    found = rows(package, request["subsets"]) if request["do"] == "rows" else check(request["answers"])
    return {"version": package.distribution.version, "changed": package.changed(), **found}


def main() -> None:
    """Answers once; what the package may print goes to standard error."""
    request = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):
        found = answer(request)
    sys.stdout.write(json.dumps(found))  # not json.dump, which is Python code


if __name__ == "__main__":
    main()
