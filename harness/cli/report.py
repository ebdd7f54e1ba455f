"""The verb ``report``: one HTML file that shows a results folder, or a submission tree, to people."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from harness.cli.console import ERR, OUT
from harness.cli.options import add_quiet, add_selection, folder
from harness.errors import EXIT_OK, MissingError
from harness.events import StepProgress
from harness.report.book.gather import gather, kind_of
from harness.report.book.results import Wanted
from harness.report.compare import compare
from harness.report.page.files import refuse_in_a_run, refuse_inside, refuse_no_folder, refuse_to_replace, write_page
from harness.report.progress import observer
from harness.report.selection import part_of, refuse_unknown
from harness.report.summary import summary


def run(argv: Sequence[str]) -> int:
    """Writes the report and prints it in short; 0 where it is written, whatever it says.

    Nothing is changed in what is reported, and no file that is no report of ours is written over.
    """
    args = _parser().parse_args(argv)
    page, plot_files = _drawers()
    _refuse_targets(args)
    wanted = Wanted(args.systems, args.benchmarks, args.scenarios)
    with observer(ERR, quiet=args.quiet) as tell:
        tell(StepProgress(f"reading {args.input}", 0, None))
        whole = gather(args.input, round_=args.round, results_dir=args.results_dir)
        refuse_unknown(whole, wanted)
        book = part_of(whole, wanted)
        comparison = None if args.compare is None else compare(part_of(gather(args.compare), wanted), book)
        tell(StepProgress("drawing", 0, None))
        write_page(args.out, page.render(book, comparison))
        plots = 0 if args.plots is None else plot_files.write_plots(book, args.plots)
    if not args.quiet:
        OUT.print(summary(book, comparison))
        if args.plots is not None:
            OUT.print(f"the plots: {args.plots} ({plots} of them, each as SVG and as PNG)", markup=False)
    OUT.print(f"the report: {args.out}", markup=False)
    return EXIT_OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness report", description=__doc__)
    help_ = "a results folder, or the folder that holds closed/ or open/ (default: results)"
    parser.add_argument("--input", type=folder, default=Path("results"), metavar="DIR", help=help_)
    help_ = "an earlier results folder or tree: what changed since is told row by row"
    parser.add_argument("--compare", type=folder, metavar="EARLIER", help=help_)
    help_ = "the runs that a tree was packaged from: with them its figures are all there"
    parser.add_argument("--results_dir", type=folder, metavar="DIR", help=help_)
    help_ = "where the report goes (default: %(default)s)"
    parser.add_argument("--out", type=folder, default=Path("build/report.html"), metavar="FILE", help=help_)
    parser.add_argument("--force", action="store_true", help="write over a file that is no report of the harness")
    help_ = "write every plot here too, as SVG and as PNG"
    parser.add_argument("--plots", type=folder, metavar="DIR", help=help_)
    help_ = "the round whose rules a tree is read by (default: the one that it says, or that its seeds are of)"
    parser.add_argument("--round", metavar="ROUND", help=help_)
    add_selection(parser)
    add_quiet(parser)
    return parser


def _drawers() -> tuple[ModuleType, ModuleType]:
    """What draws the page, and what draws plots; MissingError where their libraries are not installed."""
    try:
        from harness.report.page import plot_files, render
    except ModuleNotFoundError as error:
        raise MissingError(f"the verb report needs the package {error.name}", mend="pip install '.[report]'") from error
    return render, plot_files


def _refuse_targets(args: argparse.Namespace) -> None:
    """Before anything is read: what would be written where it may not be."""
    for source in (args.input, args.compare):
        if source is not None and kind_of(source) == "tree":
            refuse_inside(source, args.out, "--out")
            if args.plots is not None:
                refuse_inside(source, args.plots, "--plots")
    refuse_in_a_run(args.out, "--out")
    refuse_to_replace(args.out, force=args.force)
    if args.plots is not None:
        refuse_in_a_run(args.plots / "plot", "--plots")
        refuse_no_folder(args.plots, "--plots")
