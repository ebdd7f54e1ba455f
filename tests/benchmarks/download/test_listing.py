from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks.download import Index, ListedFile, list_path, parse_listing
from harness.errors import DatasetError

MD5 = "0123456789abcdef0123456789abcdef"


def test_lines_as_md5sum_writes_them() -> None:
    text = f"{MD5}  ./perf/a.parquet\n{MD5.upper()} *acc/b c.npy\n\n{MD5}\td.npy\r\n"
    assert parse_listing(text, "list").files == (
        ListedFile("perf/a.parquet", MD5),
        ListedFile("acc/b c.npy", MD5),
        ListedFile("d.npy", MD5),
    )


@pytest.mark.parametrize(
    "line",
    [
        f"{MD5}  ../../.ssh/authorized_keys",
        f"{MD5}  /etc/passwd",
        f"{MD5}  a/../../b",
        f"{MD5}  a//b",
        f"{MD5}  a\\b",
        f"{MD5}  a\x1b[2Jb",
        f"{MD5}  good",
        f"{MD5[1:]}  short",
        f"{MD5}",
        "<html><body>Sign in</body></html>",
    ],
)
def test_a_line_that_is_none_is_told_with_its_number(line: str) -> None:
    with pytest.raises(DatasetError, match="not a line of a list of md5") as caught:
        parse_listing(f"{MD5}  good\n{line}\n", "list")
    assert caught.value.where == "list, line 2"


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_list(text: str) -> None:
    with pytest.raises(DatasetError, match="the list of md5 is empty"):
        parse_listing(text, "list")


@given(st.text(alphabet=st.sampled_from("0a/.\\\n \t*é\0~"), max_size=60))
def test_whatever_a_list_says_its_paths_stay_inside(path: str) -> None:
    try:
        files = parse_listing(f"{MD5}  {path}", "list").files
    except DatasetError:
        return
    inside = Path("/data/gpt-oss-120b")
    for file in files:
        assert (inside / file.path).resolve().is_relative_to(inside)
        assert (inside / file.path).resolve() != inside


def test_addresses_follow_from_the_index(tmp_path: Path) -> None:
    index = Index("https://host.invalid/metadata/gpt-oss-data.uri")
    assert index.list_url == "https://host.invalid/metadata/gpt-oss-data.md5"
    assert index.base("https://host.invalid/gpt-oss_data/\n") == "https://host.invalid/gpt-oss_data"
    assert list_path(tmp_path, index) == tmp_path / "gpt-oss-data.md5"
