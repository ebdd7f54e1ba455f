"""Where a report is written: whole or not at all, and over nothing that is somebody else's."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from harness.errors import ConfigError, MissingError
from harness.report.page import files


def test_a_report_of_ours_is_replaced_and_nothing_else_is(tmp_path: Path) -> None:
    page, other = tmp_path / "report.html", tmp_path / "notes.html"
    files.refuse_to_replace(page, force=False)
    page.write_text(f'<!doctype html><meta name="generator" content="{files.GENERATOR}">', encoding="utf-8")
    files.refuse_to_replace(page, force=False)
    other.write_text("my notes", encoding="utf-8")
    with pytest.raises(ConfigError, match="no report of the harness"):
        files.refuse_to_replace(other, force=False)
    files.refuse_to_replace(other, force=True)
    with pytest.raises(ConfigError, match="cannot be written: Is a directory"):
        files.refuse_to_replace(tmp_path, force=True)


def test_a_tree_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "tree" / "closed").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "tree" / "closed")
    for target in (tmp_path / "tree" / "report.html", tmp_path / "link" / "x" / "report.html"):
        with pytest.raises(ConfigError, match="would change it"):
            files.refuse_inside(tmp_path / "tree", target, "--out")
    files.refuse_inside(tmp_path / "tree", tmp_path / "report.html", "--out")


def test_what_a_run_left_is_not_written_over(tmp_path: Path) -> None:
    run = tmp_path / "results" / "attempt_01"
    (run / "logs").mkdir(parents=True)
    (run / "run.json").write_text("{}", encoding="utf-8")
    for target in (run / "run.json", run / "report.html", run / "logs" / "mlperf_log_detail.txt"):
        with pytest.raises(ConfigError, match="might replace what it left"):
            files.refuse_in_a_run(target, "--out")
    files.refuse_in_a_run(tmp_path / "results" / "report.html", "--out")


def test_a_page_is_written_with_its_folder_and_a_path_that_is_none_is_said(tmp_path: Path) -> None:
    files.write_page(tmp_path / "a" / "b" / "report.html", "page")
    assert (tmp_path / "a" / "b" / "report.html").read_text(encoding="utf-8") == "page"
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["report.html"]
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be written") as raised:
        files.write_page(tmp_path / "file" / "report.html", "page")
    assert raised.value.mend == "give another --out"


def test_a_full_disk_is_no_fault_of_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(MissingError, match="No space left"):
        files.write_plot(tmp_path, "run-ttft", "<svg/>", b"png")


def test_names_of_files_are_letters_that_every_system_takes() -> None:
    assert files.file_name("a/b c#1", "../ttft") == "a-b-c-1-ttft"
