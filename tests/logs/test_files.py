from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from harness.logs import FilePass, LogError
from harness.logs.files import passing


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "file"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"a", [b"a"]),
        (b"a\n\nb\n", [b"a", b"", b"b"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"a\rb\r\r\n", [b"a\rb\r"]),
        (b"0123456789\n0123456789\r\n0123456789", [b"0123456789"] * 3),
    ],
)
def test_lines_and_their_numbers(tmp_path, content, expected):
    with FilePass(written(tmp_path, content)) as file:
        assert list(file.lines(10)) == list(enumerate(expected, 1))
        assert file.sha256() == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    "content", [b"a\n01234567890\n", b"a\n01234567890", b"a\n01234567890\r\n", b"a\n0123456789\r\r\n"]
)
def test_a_line_that_is_too_long(tmp_path, content):
    with FilePass(written(tmp_path, content)) as file, pytest.raises(LogError, match="more than 10 bytes") as caught:
        list(file.lines(10))
    assert caught.value.line == 2


def test_a_whole_file_and_its_hash(tmp_path):
    with FilePass(written(tmp_path, b"0123456789")) as file:
        assert file.whole(10) == b"0123456789"
        assert file.sha256() == hashlib.sha256(b"0123456789").hexdigest()
    with FilePass(written(tmp_path, b"01234567890")) as file, pytest.raises(LogError, match="more than 10 bytes"):
        file.whole(10)


def test_the_start_is_seen_and_not_taken(tmp_path):
    content = bytes(range(256)) * 2000
    with FilePass(written(tmp_path, content)) as file:
        assert file.start(5000) == content[:5000]
        assert file.whole(1 << 20) == content
        assert file.sha256() == hashlib.sha256(content).hexdigest()
    with FilePass(written(tmp_path, b"ab")) as file:
        assert file.start(5000) == b"ab"


def test_the_hash_reads_what_the_reader_left(tmp_path):
    content = b"a\n" * 1_000_000
    with FilePass(written(tmp_path, content)) as file:
        next(file.lines())
        assert file.sha256() == hashlib.sha256(content).hexdigest() == file.sha256()


def test_a_pass_that_is_under_way_is_used_and_left_open(tmp_path):
    path = written(tmp_path, b"a\nb\n")
    with FilePass(path) as file:
        with passing(file) as same:
            assert same is file
        assert [raw for _, raw in file.lines()] == [b"a", b"b"]
    with passing(path) as file:
        assert [raw for _, raw in file.lines()] == [b"a", b"b"]
        with pytest.raises(ValueError, match="does not hash"):
            file.sha256()


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(LogError, match="no such file"):
        FilePass(tmp_path / "absent")
    with pytest.raises(LogError, match="not a plain file"):
        FilePass(tmp_path)
    with pytest.raises(LogError, match="cannot be read: File name too long"):
        FilePass(tmp_path / ("x" * 300))
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(LogError):
        FilePass(loop)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LogError, match="not a plain file"):
        FilePass(tmp_path / "pipe")
