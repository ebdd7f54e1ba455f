"""The verb report: runs in, a page, plots and a summary out; bad input is told and nothing is written."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.ledger import ResultsStore, State, write_record
from tests.ledger.made_records import record
from tests.report.book.made import made_run

pytest.importorskip("matplotlib", reason="needs the [report] extra")
pytest.importorskip("jinja2", reason="needs the [report] extra")

pytestmark = pytest.mark.report


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    made_run(tmp_path / "results", 400)
    return tmp_path / "results"


def test_a_results_folder(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report"]) == 0
    page = (tmp_path / "build" / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "BOX/gpt-oss-120b/Server/performance#1" in page
    assert "not verified by MLCommons Association" in page
    assert page.count("<svg") >= 8
    out = capsys.readouterr().out
    assert "gpt-oss-120b on BOX" in out
    assert "not verified by MLCommons Association" in out
    assert "the report: build/report.html" in out


def test_it_is_written_over_itself_and_over_nothing_else(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--quiet"]) == 0
    assert capsys.readouterr().out == "the report: build/report.html\n"
    assert main(["report", "--quiet"]) == 0
    other = results.parent / "notes.txt"
    other.write_text("mine", encoding="utf-8")
    assert main(["report", f"--out={other}"]) == 2
    assert other.read_text(encoding="utf-8") == "mine"
    assert "this file is no report of the harness" in capsys.readouterr().err
    assert main(["report", f"--out={other}", "--force", "--quiet"]) == 0


@pytest.mark.parametrize("plots", ["notes.txt", "notes.txt/plots"])
def test_plots_where_a_file_is_are_refused_before_anything_is_written(
    results: Path, plots: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (results.parent / "notes.txt").write_text("mine", encoding="utf-8")
    assert main(["report", f"--plots={plots}"]) == 2
    assert "a file, and not a folder" in capsys.readouterr().err
    assert not (results.parent / "build").exists()


def test_plots_say_what_nobody_verified(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--plots=plots"]) == 0
    drawn = sorted((tmp_path / "plots").glob("*.svg"))
    assert len(drawn) >= 8
    assert f"the plots: plots ({len(drawn)} of them, each as SVG and as PNG)" in capsys.readouterr().out
    for path in drawn:
        assert "not verified by MLCommons Association" in path.read_text(encoding="utf-8")
        assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_an_earlier_folder_beside_it(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_run(tmp_path / "earlier", 300)
    assert main(["report", "--compare=earlier"]) == 0
    assert "BOX/gpt-oss-120b/Server: " in capsys.readouterr().out
    assert 'id="comparison"' in (tmp_path / "build" / "report.html").read_text(encoding="utf-8")


def test_runs_that_are_half_there_are_shown_as_what_they_are(results: Path, tmp_path: Path) -> None:
    cut = made_run(results, 10)
    text = (cut.folder / "run.json").read_text(encoding="utf-8")
    (cut.folder / "run.json").write_text(text[: len(text) // 2], encoding="utf-8")
    ResultsStore(results).new_attempt("BOX", "gpt-oss-120b", "Server", "accuracy")
    run_id, killed = ResultsStore(results).new_attempt("BOX", "gpt-oss-120b", "Server", "TEST07")
    write_record(killed, record(run_id, state=State.RUNNING))
    bad = made_run(results, 10)
    (bad.folder / "samples.arrow").write_bytes(b"no arrow")
    assert main(["report", "--quiet"]) == 0
    page = (tmp_path / "build" / "report.html").read_text(encoding="utf-8")
    assert page.count('<details class="panel run"') == 5
    assert "unread" in page and "not shown" in page


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["--input=nowhere"], 2, "no such folder"),
        (["--input=build"], 2, "neither runs nor a submission tree"),
        (["--compare=nowhere"], 2, "no such folder"),
        (["--systems=OTHER"], 2, "unknown system 'OTHER'"),
        (["--out=results"], 2, "the report cannot be written"),
    ],
)
def test_bad_input_is_told(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], argv: list[str], code: int, said: str
) -> None:
    (tmp_path / "build").mkdir()
    assert main(["report", *argv]) == code
    assert said in capsys.readouterr().err
    assert not list((tmp_path / "build").iterdir())


def test_a_tree_is_not_written_into(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tree" / "closed" / "Acme").mkdir(parents=True)
    for option in ("--out=tree/report.html", "--plots=tree/plots"):
        assert main(["report", "--input=tree", option]) == 2
        assert "would change it" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "tree").iterdir()] == ["closed"]


def test_a_tree_without_rows_is_a_report_that_says_so(results: Path, tmp_path: Path) -> None:
    (tmp_path / "tree" / "closed" / "Acme" / "results").mkdir(parents=True)
    assert main(["report", "--input=tree", "--quiet"]) == 0
    page = (tmp_path / "build" / "report.html").read_text(encoding="utf-8")
    assert "There is no row here" in page
    assert "TREE-NO-ROWS" in page


@pytest.mark.parametrize("library", ["jinja2", "matplotlib"])
def test_what_is_not_installed_is_said_with_how_to_install_it(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], library: str
) -> None:
    for name in [name for name in sys.modules if name.startswith("harness.report.page.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("harness.report.page.render", raising=False)
    monkeypatch.delattr("harness.report.page.plot_files", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    assert main(["report"]) == 3
    told = capsys.readouterr().err
    assert f"the verb report needs the package {library}" in told
    assert "pip install '.[report]'" in told


def test_a_record_of_another_round_is_shown_without_its_rules(results: Path, tmp_path: Path) -> None:
    old = made_run(results, 10, scenario="Offline")
    told = json.loads((old.folder / "run.json").read_text(encoding="utf-8"))
    (old.folder / "run.json").write_text(json.dumps(told | {"round": "v9.9"}), encoding="utf-8")
    assert main(["report", "--quiet"]) == 0
    assert "v9.9" in (tmp_path / "build" / "report.html").read_text(encoding="utf-8")
