"""Qwen3-VL's chats behind the protocol: what a script spells in its vocabulary, and what an image is in a prompt."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.engines.chats import qwen3_vl, qwen3_vocab
from harness.engines.chats.picture import image_tokens
from harness.serve.qwen3_vl_chat import Qwen3Codec, Qwen3VlChat
from harness.serve.refusal import Refusal
from harness.serve.requests import ChatRequest
from tests.serve.client import Server
from tests.serve.test_chat import TOOLS, url

image = pytest.importorskip("PIL.Image", reason="needs the [qwen3-vl] extra")
pytestmark = pytest.mark.qwen3vl

SIZES = {"PNG": (64, 300), "JPEG": (640, 480), "WEBP": (33, 40)}
SPOKEN = (
    '{"category": "Möbel > Stühle", "brand": "木村", "is_secondhand": false}',
    "<think>not a thinking model</think> but it may say so 😀",
    '<tool_call>{"name": "look", "arguments": {}}</tool_call>',
)
LETTER_A = 64
"""The letters are the vocabulary's first entries, whichever package carries it."""
SPECIAL = [qwen3_vocab.END_OF_TURN, LETTER_A, qwen3_vocab.END_OF_TEXT]
LIMIT = 1500
MOST = 300_000
"""Pixels; see the prompt's length."""


def picture(kind: str, *, shade: int = 90) -> bytes:
    file = io.BytesIO()
    image.new("RGB", SIZES[kind], (shade, 120, 30)).save(file, kind)
    return file.getvalue()


def part(kind: str, data: bytes | None = None) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url(picture(kind) if data is None else data, kind)}}


def content(kind: str, text: str = "Möbel: what is it?") -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}, part(kind)]


def request(**fields: Any) -> ChatRequest:
    return ChatRequest.model_validate({"model": "m", "messages": [{"role": "user", "content": "hi"}]} | fields)


@pytest.fixture(scope="module", params=["trtllm-serve", "vllm"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path: Path = tmp_path_factory.mktemp("serve") / "answers.npz"
    answers = [*map(qwen3_vocab.encode, SPOKEN), SPECIAL]
    tokens = np.array([token for each in answers for token in each], np.int32)
    np.savez(path, tokens=tokens, ends=np.cumsum([len(each) for each in answers]).astype(np.int64))
    script = {"answers": {"serve": str(path)}, "vocab_size": qwen3_vocab.VOCAB_SIZE}
    options = ("--engine=scripted", f"--like={request.param}", f"--max_total_tokens={LIMIT}", "--stream_interval=2")
    with Server(*options, "--script", json.dumps(script)) as running:
        yield running


# -- over HTTP ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SIZES)
def test_an_image_is_so_many_tokens_of_the_prompt(server: Server, kind: str) -> None:
    asked = content(kind)
    body = server.chat(asked, row=0).json
    assert body["choices"][0]["message"]["content"] == SPOKEN[0]
    text = "<|im_start|>user\nMöbel: what is it?<|vision_start|><|vision_end|><|im_end|>\n<|im_start|>assistant\n"
    wanted = len(qwen3_vocab.encode(text)) + image_tokens(*SIZES[kind])
    assert body["usage"]["prompt_tokens"] == wanted
    assert wanted == len(qwen3_vl.prompt_ids({"messages": [{"role": "user", "content": asked}]}))
    assert body["usage"]["completion_tokens"] == len(qwen3_vocab.encode(SPOKEN[0]))


@pytest.mark.parametrize("row", [0, 1])
def test_a_stream_tells_the_same_text_whatever_characters_its_tokens_cut(server: Server, row: int) -> None:
    events = server.chat(content("PNG"), row=row, stream=True, stream_options={"include_usage": True}).events
    deltas = [each["choices"][0]["delta"] for each in events[1:-2]]
    assert "".join(each.get("content") or "" for each in deltas) == SPOKEN[row]
    assert not any(each.get("reasoning") or each.get("reasoning_content") for each in deltas)
    assert events[-2]["usage"]["prompt_tokens"] == server.chat(content("PNG"), row=0).json["usage"]["prompt_tokens"]


def test_special_tokens_have_a_text_where_they_are_wanted(server: Server) -> None:
    assert server.chat("hi", row=3).json["choices"][0]["message"]["content"] == "a"
    named = server.chat("hi", row=3, skip_special_tokens=False).json["choices"][0]["message"]["content"]
    assert named == "<|im_end|>a<|endoftext|>"


def test_a_call_is_one_where_tools_are_offered(server: Server) -> None:
    told = server.chat("hi", row=2).json["choices"][0]["message"]
    assert (told["content"], told["tool_calls"]) == (SPOKEN[2], [])
    called = server.chat("hi", row=2, tools=TOOLS)
    assert called.status == 400 and "tools" in called.body.decode()


def test_text_alone_is_a_chat_too(server: Server) -> None:
    body = server.chat("hi", row=0).json
    wanted = qwen3_vocab.encode("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n")
    assert body["usage"]["prompt_tokens"] == len(wanted)
    assert server.get("/health_generate").status == 200


def test_a_chat_that_is_too_long_is_told_as_the_server_tells_it(server: Server) -> None:
    answer = server.chat(content("PNG", "long " * LIMIT), row=0)
    assert answer.status == 400
    assert b"max_seq_len (1500)" in answer.body or b"maximum context length is 1500 tokens" in answer.body


def broken_png() -> bytes:
    data = bytearray(picture("PNG"))
    data[len(data) // 2] ^= 0xFF
    return bytes(data)


REFUSED: dict[str, tuple[list[dict[str, Any]], str]] = {
    "two images": ([part("PNG"), part("PNG")], "2 images"),
    "a distant one": ([{"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}], "url begins with"),
    "no base64": ([{"type": "image_url", "image_url": {"url": "data:image/PNG;base64,%%"}}], "not base64"),
    "no image": ([part("PNG", b"GIF89a")], "cannot be read"),
    "half an image": ([part("JPEG", picture("JPEG")[:700])], "cannot be decoded"),
    "a broken one": ([part("PNG", broken_png())], "cannot be decoded"),
    "a pad in a text": ([{"type": "text", "text": "<|image_pad|>"}, part("PNG")], "spells <|image_pad|>"),
    "another part": ([{"type": "video_url"}, part("PNG")], "neither a text nor an image_url"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(server: Server, name: str) -> None:
    parts, words = REFUSED[name]
    for stream in (False, True):
        answer = server.chat(parts, row=0, stream=stream)
        assert answer.status == 400, answer.body
        assert words in answer.body.decode()


# -- the format --------------------------------------------------------------------------------------------------------


def test_the_chat_goes_to_the_engine_as_it_was_received() -> None:
    chat = Qwen3VlChat(Qwen3Codec(), (1024, MOST))
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": content("JPEG"), "extra": [1, None]},
    ]
    asked = request(messages=messages)
    packed = chat.chat(asked)
    assert packed is not None and json.loads(packed) == {"messages": messages}
    assert chat.prompt(asked) == qwen3_vl.prompt_ids(packed, 1024, MOST)
    assert len(chat.prompt(asked)) < len(qwen3_vl.prompt_ids(packed))
    assert chat.chat(request()) is None


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"add_generation_prompt": False}, "add_generation_prompt"),
        ({"ignore_eos": True}, "ignore_eos"),
        ({"stop_token_ids": [5]}, "stop_token_ids"),
        ({"messages": []}, "no object, or there is none"),
        ({"messages": [{"role": "user", "content": "a\ud800"}]}, "Unicode"),
        ({"messages": [{"role": "critic", "content": [part("PNG")]}]}, "the role 'critic'"),
    ],
)
def test_what_the_template_has_no_place_for(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(Refusal, match=words):
        Qwen3VlChat(Qwen3Codec(), (1024, MOST)).prompt(request(**fields))


@pytest.mark.parametrize("skip", [True, False])
def test_streamed_text_is_the_whole_text(skip: bool) -> None:
    ids = [*qwen3_vocab.encode("木村 Möbel 😀 <think>"), *SPECIAL, *qwen3_vocab.encode("é")]
    decoder = Qwen3Codec().decoder(skip_special=skip)
    text = "".join(decoder.feed([token], last=False) for token in ids) + decoder.feed([], last=True)
    middle = "a" if skip else "<|im_end|>a<|endoftext|>"
    assert text == f"木村 Möbel 😀 <think>{middle}é"
    assert Qwen3Codec().decoder(skip_special=skip).feed(ids, last=True) == text
