"""``check_gpu``: on a machine with a GPU, asks an engine what no machine without one can show."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table

from harness import env
from harness.cli.console import ERR, OUT
from harness.cli.options import add_quiet, comma_list, folder
from harness.config.plain_yaml import read_yaml
from harness.errors import EXIT_OK, ConfigError, Refused
from harness.report.progress import observer
from harness.runs.gpu_check.check import REPORT, Check
from harness.runs.gpu_check.report import Report, Status
from harness.runs.gpu_check.settings import PARTS, SERVERS, CheckSettings

_COLOURS = {Status.PASSED: "green", Status.FAILED: "red", Status.NOT_ASKED: "yellow"}


def run(argv: list[str]) -> int:
    """Asks, shows a table and writes gpu_check.json. 0: all that was asked passed; 1: something did not."""
    options = _parser().parse_args(argv)
    settings = CheckSettings(
        server=options.server,
        checkpoint=options.checkpoint,
        out=options.out.absolute(),
        data_dir=(options.data_dir or env.data_dir()).absolute(),
        endpoint=options.endpoint.rstrip("/"),
        version=options.version,
        gpus=options.gpus,
        port=options.port,
        options=_options(options.options),
        prefix=tuple(shlex.split(options.prefix)),
        parts=tuple(options.parts or _parts(options.endpoint)),
        budget_s=options.budget_s,
    )
    with observer(ERR, quiet=options.quiet) as tell:
        report = Check(settings, ["python", "-m", "harness", "check_gpu", *argv], tell).run()
    OUT.print(_table(report))
    counts = ", ".join(f"{report.count(status)} {status.value}" for status in Status)
    OUT.print(f"{counts}; all of it, with versions and machine, is in {settings.out / REPORT}", markup=False)
    well = report.count(Status.PASSED) and not report.count(Status.FAILED)
    return EXIT_OK if well else Refused.exit_code


def _parts(endpoint: str) -> tuple[str, ...]:
    """A server that runs already has the memory that an engine in process would need."""
    return PARTS[:1] if endpoint else PARTS


def _options(path: Path | None) -> dict[str, Any]:
    found = {} if path is None else read_yaml(path)[0]
    if not isinstance(found, dict):
        raise ConfigError("a file of server options holds no mapping", where=path, expected="option: value, as YAML")
    return found


def _table(report: Report) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title="What the check saw", title_justify="left")
    for column in ("where", "check", "", "seen"):
        table.add_column(column, overflow="fold", no_wrap=column != "seen")
    for finding in report.findings:
        status = finding.outcome.status
        colour = _COLOURS[status]
        table.add_row(finding.where, finding.name, f"[{colour}]{status.value}[/]", escape(finding.outcome.seen))
    return table


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness check_gpu", description=__doc__)
    parser.add_argument("--server", choices=SERVERS, default=SERVERS[0], help="which server (default: %(default)s)")
    parser.add_argument("--checkpoint", type=folder, metavar="DIR", help="the weights; torch makes a stand-in")
    parser.add_argument("--endpoint", default="", metavar="URL", help="a server that runs already; default: start one")
    parser.add_argument("--version", default="", help="the server's version (default: what it or its package says)")
    parser.add_argument("--gpus", type=_count, default=1, metavar="N", help="tensor parallel GPUs (default: 1)")
    parser.add_argument("--port", type=_count, default=30000, help="where to start a server (default: %(default)s)")
    parser.add_argument("--prefix", default="", metavar="WORDS", help="before the server's command: docker run …")
    parser.add_argument("--options", type=folder, metavar="FILE", help="YAML of server options, over the check's own")
    parser.add_argument(
        "--parts", type=comma_list, default=[], metavar="A,B",
        help=f"of {', '.join(PARTS)} (default: both; with --endpoint the server alone)",
    )  # fmt: skip
    parser.add_argument(
        "--budget_s", type=float, default=600.0, metavar="S", help="start nothing that would not end by then"
    )
    parser.add_argument("--data_dir", type=folder, metavar="DIR", help="where data sets lie (default: build/data)")
    parser.add_argument(
        "--out", type=folder, default=Path("build/gpu_check"), metavar="DIR", help="what is left (default: %(default)s)"
    )
    add_quiet(parser)
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of at least 1")
    return int(text)
