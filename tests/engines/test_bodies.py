from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.engines.bodies import NO_SESSION, RESERVED, BodyStore, chat_as_prompt, chat_of_prompt, encoded
from harness.errors import ConfigError, DatasetError

CHATS = [
    {"messages": [{"role": "user", "content": "hallo"}]},
    {"messages": [{"role": "user", "content": "größer 中"}], "tools": [{"type": "function"}]},
]


def test_gives_back_what_was_written(tmp_path: Path) -> None:
    store = BodyStore.write(tmp_path / "chats", iter(CHATS), [4, NO_SESSION])
    assert len(store) == 2
    assert [json.loads(bytes(store[row])) for row in range(2)] == CHATS
    assert store.sessions.tolist() == [4, NO_SESSION]
    assert [path.name for path in tmp_path.iterdir()] == ["chats"]
    again = BodyStore.open(tmp_path / "chats")
    assert [bytes(again[row]) for row in range(2)] == [bytes(store[row]) for row in range(2)]


@settings(deadline=None)
@given(texts=st.lists(st.text(), max_size=20))
def test_any_texts(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    chats = [{"messages": [{"role": "user", "content": text}]} for text in texts]
    store = BodyStore.write(tmp_path_factory.mktemp("any") / "chats", chats)
    assert [json.loads(bytes(store[row])) for row in range(len(store))] == chats
    assert set(store.sessions.tolist()) <= {NO_SESSION}


def test_rows_that_are_not_there(tmp_path: Path) -> None:
    store = BodyStore.write(tmp_path / "chats", CHATS)
    for row in (-1, 2):
        with pytest.raises(IndexError):
            store[row]


def test_replaces_a_file_only_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "chats"
    BodyStore.write(path, CHATS)
    with pytest.raises(ConfigError, match="without messages"):
        BodyStore.write(path, [CHATS[0], {"messages": []}])
    assert len(BodyStore.open(path)) == 2
    assert [each.name for each in tmp_path.iterdir()] == ["chats"]


@pytest.mark.parametrize("field", sorted(RESERVED))
def test_what_a_run_sets_is_left_to_it(tmp_path: Path, field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        BodyStore.write(tmp_path / "chats", [CHATS[0] | {field: 1}])


def test_tokens_as_they_were_counted(tmp_path: Path) -> None:
    counted: list[int] = []

    def counting() -> Iterator[bytes]:
        for chat in CHATS:
            counted.append(len(counted) + 7)
            yield encoded(chat)

    store = BodyStore.write(tmp_path / "chats", counting(), tokens=counted)
    assert store.tokens.tolist() == [7, 8]
    assert [json.loads(bytes(store[row])) for row in range(2)] == CHATS
    assert BodyStore.write(tmp_path / "uncounted", CHATS).tokens.tolist() == [0, 0]
    with pytest.raises(ConfigError, match="2 chats with 2 tokens, the least -1"):
        BodyStore.write(tmp_path / "less", CHATS, tokens=[3, -1])


@pytest.mark.parametrize("body", [b"", b"[]", b'{"messages"', b"null"])
def test_ready_bytes_that_are_no_object(tmp_path: Path, body: bytes) -> None:
    with pytest.raises(ConfigError, match="row 1"):
        BodyStore.write(tmp_path / "chats", [encoded(CHATS[0]), body])
    assert list(tmp_path.iterdir()) == []


def test_rows_are_the_same_after_their_memory_was_given_back(tmp_path: Path) -> None:
    chats = [{"messages": [{"role": "user", "content": f"{row}" * 3000}]} for row in range(50)]
    store = BodyStore.write(tmp_path / "chats", chats)
    for rows in ([], [0], [49, 3, 4, 3], range(50)):
        store.will_need(rows)
        store.release(rows)
    assert [json.loads(bytes(store[row])) for row in range(50)] == chats
    for rows in ([50], [-1, 3]):
        with pytest.raises(IndexError, match="of 50 chats"):
            store.will_need(rows)


def resident_kb(path: Path) -> int:
    """How much of a file's mapping is in this process' memory."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    for line in lines:
        if line.endswith(str(path)):
            return int(next(each for each in lines if each.startswith("Rss:")).split()[1])
    raise AssertionError(f"{path} is not mapped")


def test_released_rows_take_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "chats"
    store = BodyStore.write(path, [{"messages": [{"content": "x" * 1_000_000}]} for _ in range(8)])
    assert all(bytes(store[row]) for row in range(8))
    assert resident_kb(path) > 7_000
    store.release(range(8))
    assert resident_kb(path) < 1_000


@settings(deadline=None)
@given(text=st.text())
def test_a_chat_goes_as_a_prompt(text: str) -> None:
    body = encoded({"messages": [{"role": "user", "content": text}]})
    prompt = chat_as_prompt(body)
    assert (prompt.dtype, prompt.ndim) == (np.int32, 1)
    assert chat_of_prompt(prompt) == body


@pytest.mark.parametrize("sessions", [[1], [1, 2, 3], [0, -2]])
def test_sessions_that_do_not_fit(tmp_path: Path, sessions: list[int]) -> None:
    with pytest.raises(ConfigError, match="sessions"):
        BodyStore.write(tmp_path / "chats", CHATS, sessions)


def test_a_chat_that_is_no_json(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no JSON"):
        BodyStore.write(tmp_path / "chats", [{"messages": [object()]}])


@settings(deadline=None)
@given(cut=st.integers(0, 400))
def test_a_file_that_is_cut_is_never_opened(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "chats"
    BodyStore.write(path, CHATS)
    data = path.read_bytes()
    path.write_bytes(data[: min(cut, len(data) - 1)])
    with pytest.raises(DatasetError, match="store of chats"):
        BodyStore.open(path)


def test_other_files(tmp_path: Path) -> None:
    with pytest.raises(DatasetError):
        BodyStore.open(tmp_path / "none")
    path = tmp_path / "chats"
    BodyStore.write(path, CHATS)
    data = bytearray(path.read_bytes())
    for place, value in ((-24, 7), (-16, 1), (-88, 200), (-56, -1 & 255), (0, 1)):
        # the count, how long the names are, the first end, a token count, the magic
        changed = bytearray(data)
        changed[place] = value
        changed[place + 7 if value == 255 else place] = value  # a negative number's sign
        path.write_bytes(changed)
        with pytest.raises(DatasetError):
            BodyStore.open(path)


THREE = [CHATS[0], CHATS[1], CHATS[0]]


def test_delays_and_names_of_sessions(tmp_path: Path) -> None:
    store = BodyStore.write(tmp_path / "chats", THREE, [0, 0, 1], None, [0, 7, 2**40], ["swe-1", "swe-1 #2"])
    for found in (store, BodyStore.open(tmp_path / "chats")):
        assert found.delays_ns.tolist() == [0, 7, 2**40]
        assert found.session_names == ("swe-1", "swe-1 #2")
        assert [found.session_name(row) for row in range(3)] == ["swe-1", "swe-1", "swe-1 #2"]
        assert [json.loads(bytes(found[row])) for row in range(3)] == THREE


def test_without_names_a_session_is_told_by_its_number(tmp_path: Path) -> None:
    store = BodyStore.write(tmp_path / "chats", THREE, [3, NO_SESSION, 4])
    assert [store.session_name(row) for row in range(3)] == ["3", "", "4"]
    assert store.delays_ns.tolist() == [0, 0, 0] and store.session_names == ()


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a"], "1 names for 2 sessions"),
        (["a", "a"], "two sessions have the name 'a'"),
        (["a", "größer"], "session 1 has the name"),
        (["a", ""], "session 1 has the name"),
        (["a", "b\r\nHost: x"], "session 1 has the name"),
        ([" a", "b"], "session 0 has the name"),
    ],
)
def test_names_that_no_header_can_have_or_that_are_not_one_each(tmp_path: Path, names: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        BodyStore.write(tmp_path / "chats", THREE, [0, 0, 1], session_names=names)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("delays", [[1], [0, 0, -1]])
def test_delays_that_do_not_fit(tmp_path: Path, delays: list[int]) -> None:
    with pytest.raises(ConfigError, match="delays_ns"):
        BodyStore.write(tmp_path / "chats", THREE, delays_ns=delays)


@settings(deadline=None)
@given(lengths=st.lists(st.integers(1, 4), min_size=1, max_size=8), lone=st.integers(0, 3))
def test_the_chats_of_a_session_lie_together(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], lone: int
) -> None:
    sessions = [NO_SESSION] * lone + [session for session, n in enumerate(lengths) for _ in range(n)]
    store = BodyStore.write(tmp_path_factory.mktemp("any") / "chats", [CHATS[0]] * len(sessions), sessions)
    ranges = [store.rows_of(session) for session in range(len(lengths))]
    assert [len(each) for each in ranges] == lengths
    assert [row for each in ranges for row in each] == list(range(lone, len(sessions)))
    with pytest.raises(IndexError, match=f"session {len(lengths)}"):
        store.rows_of(len(lengths))
    with pytest.raises(IndexError):
        store.rows_of(NO_SESSION)


def test_sessions_that_do_not_lie_together(tmp_path: Path) -> None:
    store = BodyStore.write(tmp_path / "chats", THREE, [5, 1, 5])
    with pytest.raises(DatasetError, match="session 5 do not lie together: rows 0 and 2"):
        store.rows_of(1)


def test_names_that_were_damaged_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "chats"
    BodyStore.write(path, THREE, [0, 0, 1], session_names=["name", "other"])
    data = path.read_bytes()
    for new in (b'["na\nme",', b'["name"xx', b'["name"],'):
        path.write_bytes(data.replace(b'["name",', new[:8]))
        with pytest.raises(DatasetError, match="names of its sessions"):
            BodyStore.open(path)
    path.write_bytes(data.replace(b'["name","other"]', b'["name"]        '))
    with pytest.raises(DatasetError, match="1 names and a session 1"):
        BodyStore.open(path)
