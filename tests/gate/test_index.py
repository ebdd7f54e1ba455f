from __future__ import annotations

import hashlib
from pathlib import Path, PurePosixPath

import pytest

from harness.gate.index import MAX_TEXT_BYTES, TreeIndex, Unreadable
from tests.gate.made_tree import write

LOG = PurePosixPath("a/b/log")


@pytest.fixture
def index(tmp_path: Path) -> TreeIndex:
    write(tmp_path / LOG, "one\ntwo\nthree\n")
    return TreeIndex(tmp_path)


def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that are opened from now on to be hashed alone."""
    opened: list[Path] = []
    real = Path.open

    def counting(path: Path, *args: str):
        opened.append(path)
        return real(path, *args)

    monkeypatch.setattr(Path, "open", counting)
    return opened


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("lines", [0, 1, 3])
def test_a_file_that_is_read_is_hashed_on_the_way(index, monkeypatch, told, lines):
    if told:
        index.hash_below(PurePosixPath("a"))
    with index.opened(LOG) as file:
        for number, _ in file.lines():
            if number > lines:
                break
    opened = reads(monkeypatch)
    assert index.sha256(LOG) == hashlib.sha256(b"one\ntwo\nthree\n").hexdigest()
    assert len(opened) == (0 if told else 1)
    index.sha256(LOG)
    assert len(opened) == (0 if told else 1)


def test_a_reader_that_gives_up_leaves_no_hash(index, monkeypatch):
    index.hash_below(PurePosixPath("a"))
    with pytest.raises(ZeroDivisionError), index.opened(LOG):
        raise ZeroDivisionError
    assert index.sha256(LOG) == hashlib.sha256(b"one\ntwo\nthree\n").hexdigest()


def test_what_is_no_file(index, tmp_path):
    with pytest.raises(Unreadable, match="no such file"):
        index.read(PurePosixPath("a/b"))
    with pytest.raises(Unreadable, match="cannot be read"):
        index.sha256(PurePosixPath("a/none"))
    with (tmp_path / "large").open("wb") as handle:
        handle.truncate(MAX_TEXT_BYTES + 1)
    with pytest.raises(Unreadable, match="too large"):
        TreeIndex(tmp_path).read_text(PurePosixPath("large"))


def test_a_link_is_never_followed(tmp_path):
    write(tmp_path / "real" / "file", "x")
    (tmp_path / "link").symlink_to("real")
    index = TreeIndex(tmp_path)
    assert not index.is_folder(PurePosixPath("link"))
    assert [node.path.name for node in index.files_below(PurePosixPath())] == ["file"]
