from __future__ import annotations

from pathlib import Path

import pytest

from harness.ledger.search import read_search, searches, write_search
from harness.ledger.store import LedgerError
from tests.ledger.made_searches import search, search_run


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    folder = tmp_path / "probe"
    assert searches(folder) == []
    echo = search(search_run(), search_run(kind="full", outcome="VALID"), notes=["a note"])
    assert write_search(folder, echo) == folder / "search_01.json"
    write_search(folder, search(search="12", found=None, why="no probe of 10 kept the limits"))
    assert searches(folder) == ["01", "12"]
    assert read_search(folder, "01") == echo
    assert [run.kind for run in echo.probes] == ["probe"]


@pytest.mark.parametrize("content", [None, "", "{}", '{"search": 1}'])
def test_a_file_that_is_none(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "search_01.json").write_text(content)
    with pytest.raises(LedgerError, match="not a readable record of a search"):
        read_search(tmp_path, "01")
