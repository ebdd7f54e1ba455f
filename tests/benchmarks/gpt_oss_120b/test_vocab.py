from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.benchmarks.gpt_oss_120b import vocab
from harness.env import HARNESS_CACHE_DIR, TIKTOKEN_ENCODINGS_BASE
from harness.errors import MissingError

pytestmark = pytest.mark.harmony


@pytest.fixture(autouse=True)
def _no_stated_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(TIKTOKEN_ENCODINGS_BASE.name, raising=False)
    yield


def test_it_is_made_in_the_cache_once() -> None:
    folder = vocab.find()
    made = (folder / vocab.FILE_NAME).stat()
    assert folder.is_relative_to(HARNESS_CACHE_DIR.path() or "")
    assert vocab.find() == folder
    assert (folder / vocab.FILE_NAME).stat().st_mtime_ns == made.st_mtime_ns
    assert [path.name for path in folder.iterdir()] == [vocab.FILE_NAME]


def test_the_stated_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(vocab.find() / vocab.FILE_NAME, tmp_path)
    monkeypatch.setenv(TIKTOKEN_ENCODINGS_BASE.name, str(tmp_path))
    assert vocab.find() == tmp_path


def test_a_stated_folder_without_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TIKTOKEN_ENCODINGS_BASE.name, str(tmp_path))
    with pytest.raises(MissingError, match=r"(?s)No such file.*unset TIKTOKEN_ENCODINGS_BASE"):
        vocab.find()


def test_a_file_with_another_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HARNESS_CACHE_DIR.name, str(tmp_path))
    (tmp_path / "vocab").mkdir()
    (tmp_path / "vocab" / vocab.FILE_NAME).write_bytes(b"IQ== 0\n")
    with pytest.raises(MissingError, match=r"(?s)not the vocabulary.*delete the file"):
        vocab.find()


def _quicktok(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranks: bytes | None) -> None:
    """An installation of quicktok-v1 that holds these ranks, and an empty cache."""
    data = tmp_path / "site" / "quicktok" / "data"
    data.mkdir(parents=True)
    if ranks is not None:
        (data / "o200k.vocab").write_bytes(ranks)
    spec = vocab.importlib.util.spec_from_file_location(
        "quicktok", data.parent / "__init__.py", submodule_search_locations=[str(data.parent)]
    )
    monkeypatch.setattr(vocab.importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setenv(HARNESS_CACHE_DIR.name, str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        (None, r"(?s)is nowhere.*pip install '\.\[gpt-oss\]'"),
        (b"\x02\x00\x00\x00\x01\x00a\x00\x00\x00\x00", "cannot be read"),
        (b"\x01\x00\x00\x00\x01\x00a\x00\x00\x00\x00", r"(?s)another vocabulary.*446a9538"),
    ],
)
def test_ranks_that_are_not_there_cut_short_or_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranks: bytes | None, said: str
) -> None:
    _quicktok(tmp_path, monkeypatch, ranks)
    with pytest.raises(MissingError, match=said):
        vocab.find()
    assert not (tmp_path / "cache" / "vocab" / vocab.FILE_NAME).exists()


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    monkeypatch.setenv(HARNESS_CACHE_DIR.name, str(tmp_path / "cache"))
    with pytest.raises(MissingError, match="cannot write the vocabulary"):
        vocab.find()


def test_loading_leaves_the_environment_as_it_was() -> None:
    vocab.encoding.cache_clear()
    vocab.encoding()
    assert TIKTOKEN_ENCODINGS_BASE.name not in os.environ


def test_special_tokens_are_spelled_out() -> None:
    text = "<|start|>assistant<|channel|>final<|message|>Hi<|return|>"
    ids = vocab.encode(text)
    assert ids == [200006, 173781, 200005, 17196, 200008, 12194, 200002]
    assert vocab.decode(ids) == text


def test_text_that_spells_a_special_token_can_stay_text() -> None:
    ids = vocab.encode_plain("<|end|>")
    assert max(ids) < vocab.FIRST_SPECIAL
    assert vocab.decode(ids) == "<|end|>"


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_text_comes_back(text: str) -> None:
    assert vocab.decode(vocab.encode(text)) == text


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, vocab.VOCAB_SIZE - 1)))
def test_any_ids_of_the_vocabulary_have_a_text(ids: list[int]) -> None:
    assert isinstance(vocab.decode(ids), str)


def test_half_a_character_becomes_the_replacement_character() -> None:
    ids = vocab.encode("𒀀")
    assert len(ids) > 1
    assert vocab.decode(ids[:1]) == "\ufffd"


@pytest.mark.parametrize("bad", [-1, vocab.VOCAB_SIZE, 2**31 - 1])
def test_ids_outside_the_vocabulary_are_named(bad: int) -> None:
    found = vocab.decode([1, bad, -7])
    assert found == vocab.BadIds(1, bad)
    assert str(found) == f"token id {bad} at position 1 is not in 0..201087"
