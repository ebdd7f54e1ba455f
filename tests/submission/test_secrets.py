from __future__ import annotations

import getpass
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.submission.secrets import MAX_FINDINGS_PER_FILE, Kind, Names, search

NAMES = Names(host="gpu-node-17", user="zaphod")


def kinds(tmp_path, text, *, paths=True):
    path = tmp_path / "log.txt"
    path.write_text(text)
    return [(secret.line, secret.kind) for secret in search(path, "log.txt", NAMES, paths=paths)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("hf_" + "abcDEF123456789012345", Kind.KEY),
        ("sk-proj-" + "a1" * 12, Kind.KEY),
        ("AKIA" + "ABCDEFGHIJ234567", Kind.KEY),
        ("ghp_" + "a" * 36, Kind.KEY),
        ("glpat-" + "a" * 20, Kind.KEY),
        ("MY_hf_" + "abcDEF123456789012345", Kind.KEY),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.x", Kind.KEY),
        ("https://arthur:dent@example.org/x", Kind.KEY),
        ("/lustre/arthur/model", Kind.PATH),
        ("--results_dir=/scratch/arthur", Kind.PATH),
        ('"path": "/data/x.npy"', Kind.PATH),
        ("2001:db8::7:1", Kind.ADDRESS),
        ("fe80::1234:5678:1", Kind.ADDRESS),
        ("02:42:ac:11:00:02", Kind.ADDRESS),
        ("-----BEGIN OPENSSH PRIVATE KEY", Kind.KEY),
        ("10.12.0.7", Kind.ADDRESS),
        ("http://192.168.0.1:8000/v1", Kind.ADDRESS),
        ("8.8.8.8", Kind.ADDRESS),
        ("/home/arthur/models", Kind.HOME),
        ("/Users/arthur", Kind.HOME),
        ("/root/work", Kind.HOME),
        ("on GPU-Node-17:", Kind.HOST),
        ("user=zaphod", Kind.USER),
    ],
)
def test_secrets_are_found(tmp_path, text, kind):
    assert kinds(tmp_path, f"first\nvalue {text} end\n") == [(2, kind)]


@pytest.mark.parametrize(
    "text",
    [
        "mlperf_loadgen 6.0.17",
        "driver 580.67.1.2.3",
        "127.0.0.1 and 0.0.0.0",
        "1.2.3.400",
        "1.2.3.4.5",
        "qsl_reported_total_count",
        "homework/x and src/home/x",
        '"value": {"/bindings/c_api.h": "e36b6fd1"}',
        "zaphods gpu-node-170",
        "task-sk-short",
        "a::b and ::1 and x[::2] at 10:11:12 and 10:11:12:13",
        "Tokens/s, run/of/it, ../up/there, https://example.org/a/b and / alone",
        '"data": "' + "0123456789ABCDEF" * 500 + '"',
    ],
)
def test_what_tells_nothing_is_not(tmp_path, text):
    assert kinds(tmp_path, f"{text}\n") == []


def test_paths_of_source_code_tell_nothing(tmp_path):
    assert kinds(tmp_path, "/dev/null/x and /homework/x\n", paths=False) == []


def test_names_do_not_hide_a_key(tmp_path):
    text = "gpu-node-17\n" * (2 * MAX_FINDINGS_PER_FILE) + "hf_" + "abcDEF123456789012345\n"
    found = kinds(tmp_path, text)
    assert len(found) == MAX_FINDINGS_PER_FILE + 1
    assert found[-1] == (2 * MAX_FINDINGS_PER_FILE + 1, Kind.KEY)


def test_secrets_are_masked(tmp_path):
    path = tmp_path / "log.txt"
    token = "hf_" + "abcDEF123456789012345"
    path.write_text(f"{token}\n10.12.0.7\n/home/arthur/x\ngpu-node-17\nzaphod\n")
    text = repr(search(path, "log.txt", NAMES))
    for secret in (token, token[5:], "12.0.7", "arthur", "gpu-node", "zaphod"):
        assert secret not in text


def test_a_file_full_of_hits_is_told_once(tmp_path):
    assert len(kinds(tmp_path, "10.0.0.1\n" * 500)) == MAX_FINDINGS_PER_FILE


def test_long_lines_keep_their_number(tmp_path):
    assert kinds(tmp_path, "x" * 300_000 + "\n10.0.0.1\n") == [(2, Kind.ADDRESS)]


def test_names_that_everybody_has_are_not_looked_for(monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "localhost")
    monkeypatch.setattr(getpass, "getuser", lambda: "root")
    assert Names.of_this_machine() == Names(None, None)

    def nobody():
        raise OSError("no such user")

    monkeypatch.setattr(socket, "gethostname", lambda: "gpu-node-17")
    monkeypatch.setattr(getpass, "getuser", nobody)
    assert Names.of_this_machine() == Names("gpu-node-17", None)


@pytest.fixture(scope="module")
def any_file(tmp_path_factory):
    return tmp_path_factory.mktemp("any") / "file"


@given(content=st.binary(max_size=500))
def test_any_bytes_can_be_searched(any_file, content):
    path = any_file
    path.write_bytes(content)
    assert len(search(path, "file", NAMES)) <= MAX_FINDINGS_PER_FILE
