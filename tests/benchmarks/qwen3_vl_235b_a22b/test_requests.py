from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import orjson
import psutil
import pytest

from harness.benchmarks.qwen3_vl_235b_a22b import builders, files, images, prompts, requests, tokens
from harness.benchmarks.qwen3_vl_235b_a22b.requests import build
from harness.engines.bodies import BodyStore
from harness.engines.chats.qwen3_vl import image_tokens
from harness.errors import DatasetError, RunBroke
from tests.benchmarks.qwen3_vl_235b_a22b.made import Catalogue, row
from tests.harness_process import ROOT

pytestmark = pytest.mark.qwen3vl


def children() -> list[psutil.Process]:
    return [each for each in psutil.Process().children() if "builders" in " ".join(each.cmdline())]


@pytest.mark.parametrize("version", prompts.VERSIONS)
def test_a_body_is_the_chat_of_its_row(catalogue: Catalogue, tmp_path: Path, version: prompts.Version) -> None:
    table = catalogue.write([row(0), row(1, **{files.DESCRIPTION: None})])
    store = build(table, tmp_path / "store", version=version)
    for number, body in enumerate(map(orjson.loads, map(bytes, (store[0], store[1])))):
        made = row(number)
        url = images.as_url(made[files.FORMAT] or "", made[files.IMAGE] or "")
        description = made[files.DESCRIPTION] if number == 0 else None
        expected = prompts.messages(made[files.TITLE], description, made[files.CATEGORIES] or "", url, version)
        assert body == {"messages": expected}
        assert store.tokens[number] == tokens.count(body)
    assert store.sessions.tolist() == [-1, -1]


def test_tokens_are_those_of_the_text_and_of_the_picture() -> None:
    made = row()
    url = images.as_url("PNG", made[files.IMAGE] or "")
    body = {"messages": prompts.messages("T", "D", '["A"]', url)}
    user = prompts.user_text("T", "D", '["A"]')
    text = (
        f"<|im_start|>system\n{prompts.system_text()}<|im_end|>\n"
        f"<|im_start|>user\n{user}<|vision_start|><|image_pad|><|vision_end|><|im_end|>\n<|im_start|>assistant\n"
    )
    assert tokens.count(body) == len(tokens.encode(text)) - 1 + image_tokens(40, 30)


def test_several_processes_make_what_one_makes(catalogue: Catalogue, tmp_path: Path) -> None:
    table = catalogue.write((row(i) for i in range(330)), group=200)
    seen: list[int] = []
    alone = build(table, tmp_path / "alone", version="v6.1", progress=seen.append)
    both = build(table, tmp_path / "both", version="v6.1", processes=2)
    assert alone.path.read_bytes() == both.path.read_bytes()
    assert len(alone) == seen[-1] == 330
    assert seen == sorted(set(seen))
    head = build(table, tmp_path / "head", version="v6.1", rows=70)
    assert [bytes(head[i]) for i in range(70)] == [bytes(alone[i]) for i in range(70)]
    assert len(head) == 70
    assert children() == []
    assert [each.name for each in tmp_path.iterdir() if each.is_file()].count("both.part") == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({files.IMAGE: None}, "the row has no picture"),
        ({files.IMAGE: ""}, "the row has no picture"),
        ({files.IMAGE: "no base64!"}, "bad_image_url"),
        ({files.IMAGE: "AAAA"}, "bad_image"),
        ({files.FORMAT: None}, "does not name the picture's format"),
        ({files.CATEGORIES: "[]"}, "the list of categories is"),
        ({files.DESCRIPTION: "<|image_pad|>"}, "bad_chat"),
    ],
)
def test_a_row_that_makes_no_chat_is_named(
    catalogue: Catalogue, tmp_path: Path, changes: dict[str, str | None], said: str
) -> None:
    table = catalogue.write(row(i, **(changes if i in (90, 150) else {})) for i in range(160))
    with pytest.raises(DatasetError, match=f"(?s){said}.*{re.escape(table.name)}, row 90\n"):
        build(table, tmp_path / "store", version="v6.1")
    assert not (tmp_path / "store").exists()
    assert not (tmp_path / "store.part").exists()


def test_the_first_row_that_is_wrong_is_named_however_many_make_them(catalogue: Catalogue, tmp_path: Path) -> None:
    table = catalogue.write(row(i, **({files.IMAGE: None} if i in (90, 150, 299) else {})) for i in range(300))
    with pytest.raises(DatasetError, match=f"(?s)no picture.*{re.escape(table.name)}, row 90\n.*expected: .*mend: "):
        build(table, tmp_path / "store", version="v6.1", processes=2)
    assert not (tmp_path / "store").exists()
    assert not (tmp_path / "store.part").exists()
    assert children() == []


def test_a_builder_that_dies_is_told(catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = catalogue.write(row(i) for i in range(300))
    ask = builders._Builder._ask

    def killed(self: builders._Builder, piece: object) -> object:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        return ask(self, piece)  # type: ignore[arg-type]  # handed on

    monkeypatch.setattr(builders._Builder, "_ask", killed)
    with pytest.raises(RunBroke, match="a process that makes requests ended with -9 at row 0"):
        build(table, tmp_path / "store", version="v6.1", processes=2)
    assert not (tmp_path / "store").exists()


def test_a_fault_of_a_builder_is_told_as_its_end(catalogue: Catalogue, tmp_path: Path) -> None:
    table = catalogue.write(row(i) for i in range(300))
    with pytest.raises(RunBroke, match="ended with 1 at row 0"):
        build(table, tmp_path / "store", version="v6.2", processes=2)  # type: ignore[arg-type]  # no version


_BUILD = """
import sys
from pathlib import Path
from harness.benchmarks.qwen3_vl_235b_a22b import requests
def told(rows):
    print(rows, flush=True)
requests.build(Path(sys.argv[1]), Path(sys.argv[2]), version="v6.1", processes=2, progress=told)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_running_and_no_part_is_taken_for_the_whole(
    catalogue: Catalogue, tmp_path: Path, how: signal.Signals
) -> None:
    table = catalogue.write((row(i) for i in range(4000)), group=256)
    process = subprocess.Popen(
        [sys.executable, "-c", _BUILD, str(table), str(tmp_path / "store")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    assert int(process.stdout.readline()) > 0
    helpers = psutil.Process(process.pid).children()
    assert len(helpers) == 2
    process.send_signal(how)
    _, errors = process.communicate(timeout=60)
    gone, alive = psutil.wait_procs(helpers, timeout=60)
    assert (len(gone), alive) == (2, [])
    assert not (tmp_path / "store").exists()
    if how is signal.SIGINT:
        assert b"KeyboardInterrupt" in errors
        assert errors.count(b"Traceback") == 1
        assert not (tmp_path / "store.part").exists()
    else:
        assert (tmp_path / "store.part").exists()
        build(table, tmp_path / "store", version="v6.1", rows=100)
        assert len(BodyStore.open(tmp_path / "store")) == 100
        assert not (tmp_path / "store.part").exists()


def test_a_builder_reads_what_it_is_asked_until_its_input_ends(catalogue: Catalogue) -> None:
    table = catalogue.write(row(i) for i in range(70))
    piece = builders._PIECE.pack(0, 64, 64, 6)
    done = subprocess.run(
        [sys.executable, "-m", builders._MODULE, str(table), "v6.1"],
        input=piece,
        capture_output=True,
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    kind, chats, size = builders._HEAD.unpack_from(done.stdout)
    assert (kind, chats) == (0, 6)
    assert len(done.stdout) == builders._HEAD.size + 16 * chats + size


def test_what_came_by_pipe_is_what_was_packed() -> None:
    stream = io.BytesIO()
    packed = requests.Packed(b"{}[]", (2, 2), (5, 6))
    builders._send(stream, packed)
    stream.seek(0)
    assert builders._receive(stream) == packed
    assert list(packed.bodies()) == [b"{}", b"[]"]
    with pytest.raises(EOFError):
        builders._receive(io.BytesIO(b"\0" * 5))


def test_a_body_is_json_of_the_text_as_it_is(catalogue: Catalogue, tmp_path: Path) -> None:
    store = build(catalogue.write([row()]), tmp_path / "store", version="v6.1")
    text = bytes(store[0]).decode()
    assert "Crêpe pan 0 · 鍋" in text
    assert "\\\\u00ea" in text  # the list of categories is JSON in the text, escaped there
    assert json.loads(text)
