from __future__ import annotations

import hashlib
import tracemalloc
from pathlib import Path

import pytest

from harness.logs import Document, FilePass, LogError
from harness.logs.documents import MAX_JSON_BYTES, MAX_YAML_BYTES, NotParsable, look_up


def written(tmp_path: Path, content: bytes | str) -> Path:
    path = tmp_path / "file"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


DATA = {
    "a": {"b": 1, "99.0": 2, "99.9": 3, "50": 4, "empty": {}, "none": None, "list": [1], "no": []},
    "a.b": 5,
    "c": {"d": {"e.f": {"g": 6}}},
    "zero": 0,
    "off": False,
    "0": "nought",
}


@pytest.mark.parametrize(
    ("dotted", "value"),
    [
        ("a.b", 5),  # the longest name that is there
        ("a.99.0", 2),
        ("a.99.9", 3),
        ("a.50.0", 4),  # a last .0 may be wanting
        ("a.50", 4),
        ("a.50.1", None),
        ("a.50.0.0", None),
        ("c.d.e.f.g", 6),
        ("a.empty", None),
        ("a.no", None),
        ("a.none", None),
        ("a.none.0", None),
        ("a.list.0", None),
        ("a.list", [1]),
        ("zero", 0),
        ("off", False),
        ("off.0", False),
        ("0", "nought"),
        ("absent", None),
        ("absent.0", None),
        ("", None),
    ],
)
def test_values_are_looked_up_as_the_official_checker_does(dotted, value):
    assert look_up(DATA, dotted) == value
    assert type(look_up(DATA, dotted)) is type(value)


def test_objects_within_objects_tell_their_place(tmp_path):
    path = written(tmp_path, '{"a": {"b": {"c": "x"}, "l": [{"n": 1}, {"n": true}], "m": [1], "z": 0}}')
    document = Document.read_json(path)
    inner = document.child("a.b")
    with pytest.raises(LogError, match=r'a\.b\.c is "x"') as caught:
        inner.number("c")
    assert caught.value.where == str(path)
    first, second = document.children("a.l")
    assert first.integer("n") == 1
    with pytest.raises(LogError, match=r"a\.l\.1\.n is true"):
        second.integer("n")
    assert document.child("a.absent") is None
    assert document.children("a.absent") == ()
    for ask, key in ((document.child, "a.z"), (document.children, "a.m"), (document.children, "a.b")):
        with pytest.raises(LogError, match=f"{key} is"):
            ask(key)


def test_of_a_name_twice_in_an_object_the_last_counts(tmp_path):
    assert Document.read_json(written(tmp_path, '{"a": 1, "a": 2}')).integer("a") == 2
    assert Document.read_yaml(written(tmp_path, "a: 1\na: 2\n")).integer("a") == 2


def test_crlf_and_the_hash_in_the_same_pass(tmp_path):
    content = b'{"a":\r\n 1}\r\n'
    with FilePass(written(tmp_path, content)) as file:
        assert Document.read_json(file).integer("a") == 1
        assert file.sha256() == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff", "not UTF-8"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b"[1]", "a JSON list"),
        (b"null", "a JSON NoneType"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
        (b'{"a": ' + b"[" * 100_000, "nested without end"),
        (b'{"a": ' + b"[" * 64 + b"]" * 64 + b"}", "nested deeper than 64"),
        (b'{"a": "\\ud800"}', "half of a character"),
        (b" " * (MAX_JSON_BYTES + 1), "a file of more than"),
    ],
)
def test_what_is_no_json_object(tmp_path, content, what):
    with pytest.raises(LogError, match=what):
        Document.read_json(written(tmp_path, content))


@pytest.mark.parametrize(
    "text",
    [
        "a: [", "a: b: c", "\t- x", "a: \0", "!!int ''", "!!float ''", "!!bool x", "!!timestamp x", "!!binary é",
        "a: 2024-13-45", "a: !!python/object:os.system x", "? []\n: 1", "a: *absent", "--- 1\n--- 2", "<<: 1", "!x y",
        "a: " + "9" * 5000,
    ],
)  # fmt: skip
def test_what_is_no_yaml(tmp_path, text):
    with pytest.raises(NotParsable) as caught:
        Document.read_yaml(written(tmp_path, text))
    assert "\n" not in caught.value.what


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("- 1\n", "a YAML list"),
        ("text", "a YAML str"),
        ("a: &a [*a]", "an alias within what it stands for"),
        ("a: " + "[" * 70 + "]" * 70, "nested deeper than 64"),
        ("a: " + "[" * 10_000, "nested deeper than 64"),
        ("".join(f"{' ' * i}a:\n" for i in range(600)), "nested without end"),
        ('a: "\\ud800"', "half of a character"),
        ("a: 0x" + "f" * 5000, "a number of 5002 digits"),
        ("a: 0" + "7" * 5000, "a number of 5001 digits"),
        ("a: 1" + ":59" * 5000, "a number of 15001 digits"),
        ("#" * (MAX_YAML_BYTES + 1), "a file of more than"),
    ],
)
def test_yaml_that_is_not_read(tmp_path, text, what):
    with pytest.raises(LogError, match=what) as caught:
        Document.read_yaml(written(tmp_path, text))
    assert not isinstance(caught.value, NotParsable)


@pytest.mark.parametrize("repeat", ["[*l{0},*l{0},*l{0}]", "{{<<: [*l{0},*l{0},*l{0}]}}"])
def test_aliases_that_swell_are_refused_before_they_do(tmp_path, repeat):
    lines = ["l0: &l0 {a: 1}"] + [f"l{i}: &l{i} {repeat.format(i - 1)}" for i in range(1, 30)]
    path = written(tmp_path, "\n".join(lines))
    tracemalloc.start()
    try:
        with pytest.raises(LogError, match="aliases written out"):
            Document.read_yaml(path)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_yaml_of_plain_types_and_sound_aliases(tmp_path):
    document = Document.read_yaml(
        written(tmp_path, "a: &x {n: 1, f: .inf, d: 2024-01-02}\nb: *x\nc:\n  <<: *x\n  n: 2\n")
    )
    assert (document.integer("b.n"), document.integer("c.n")) == (1, 2)
    with pytest.raises(LogError, match=r"a\.f is Infinity"):
        document.number("a.f")
    with pytest.raises(LogError, match=r"a\.d is"):
        document.text("a.d")
    assert Document.read_yaml(written(tmp_path, "")).data == {}
