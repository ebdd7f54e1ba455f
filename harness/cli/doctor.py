"""``doctor``: holds this machine against what a run, a rule or a configuration needs, and says how to mend it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from harness import env, rules
from harness.benchmarks.presence import data_sets
from harness.cli.console import OUT
from harness.cli.options import add_results_dir, add_variant, comma_list, folder
from harness.config import Project
from harness.gate.clone_check import reference_clone
from harness.ledger.store import write_atomically
from harness.machine.doctor import Check, Host, Needs, examine, exit_code, needs_of
from harness.report.doctor import as_json, rendered
from harness.rules import RulePack

_STDOUT = Path("-")


def run(argv: list[str]) -> int:
    """Looks at this machine and changes nothing. 0: all fine or only notes; 1: something would spoil or forbid a run;
    3: something needed is missing.
    """
    options = _parser().parse_args(argv)
    pack = rules.load(options.round)
    needs = needs_of(Project(Path.cwd()), options.systems, options.benchmarks, pack, options.variant)
    checks = _checks(options, needs, pack)
    if options.json != _STDOUT:
        OUT.print(rendered(checks, needs.named))
    if options.json is not None:
        _write(options.json, json.dumps(as_json(checks, options.systems, needs.benchmarks, pack.round), indent=1))
    return exit_code(checks)


def _checks(options: argparse.Namespace, needs: Needs, pack: RulePack) -> list[Check]:
    data_dir = (options.data_dir or env.data_dir()).absolute()
    host = Host(results=options.results_dir, data=data_dir)
    return [*examine(host, needs), reference_clone(pack), *data_sets(data_dir, needs.benchmarks, pack)]


def _write(path: Path, text: str) -> None:
    if path == _STDOUT:
        OUT.print(text, markup=False)
        return
    write_atomically(path, text + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness doctor", description=__doc__)
    for name in ("systems", "benchmarks"):
        parser.add_argument(
            f"--{name}", type=comma_list, default=[], metavar="A,B",
            help="comma list: what this machine is to run; default: what holds for any run",
        )  # fmt: skip
    add_variant(parser)
    parser.add_argument("--round", default=rules.LATEST, help="the MLPerf Inference round (default: %(default)s)")
    parser.add_argument("--data_dir", type=folder, metavar="DIR", help="where data sets lie (default: build/data)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all of it here too; - prints that alone")
    add_results_dir(parser)
    return parser
