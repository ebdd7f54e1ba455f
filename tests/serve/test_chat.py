"""``/v1/chat/completions`` with answers that a script spells, and the two formats of chats."""

from __future__ import annotations

import base64
import http.client
import io
import json
import random
import struct
import zlib
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.serve import images
from harness.serve.chat_words import Part, Word
from harness.serve.plain_chat import PlainChat
from harness.serve.refusal import Refusal
from harness.serve.requests import ChatRequest
from harness.serve.texts import PlainCodec
from tests.serve.client import Server
from tests.serve.conftest import FAILING_ROW, SPOKEN

TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
CALLS = [("look", {"at": "sky"}), ("wait", {})]


def png(width: int, height: int, *, shade: int = 0) -> bytes:
    """A whole grey image."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes((shade,)) * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def jpeg_head(width: int, height: int) -> bytes:
    """What of a JPEG is before its data: an application segment, tables, the frame."""
    app = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + bytes(9)
    tables = b"\xff\xc4" + struct.pack(">H", 4) + b"\0\0"
    return b"\xff\xd8" + app + tables + b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9)


def url(data: bytes, kind: str = "png") -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def image_part(data: bytes, kind: str = "png") -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url(data, kind)}}


# -- over HTTP ---------------------------------------------------------------------------------------------------------


def test_a_whole_chat_has_trtllm_serves_fields_in_its_order(speaking: Server) -> None:
    body = speaking.chat("hi", row=0).json
    assert list(body) == ["id", "object", "created", "model", "choices", "usage", "prompt_token_ids"]
    assert body["id"].startswith("chatcmpl-") and body["object"] == "chat.completion"
    (choice,) = body["choices"]
    assert list(choice)[:2] == ["index", "message"] and "mm_embedding_handle" in choice
    assert list(choice["message"]) == ["role", "content", "reasoning_content", "reasoning", "tool_calls"]
    assert choice["message"]["role"] == "assistant" and choice["message"]["content"] == SPOKEN[0]
    assert choice["finish_reason"] == "stop" and choice["message"]["tool_calls"] == []
    assert body["usage"]["completion_tokens"] == len(SPOKEN[0].encode())


def test_reasoning_is_told_apart(speaking: Server) -> None:
    message = speaking.chat("hi", row=1).json["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("because", "why not")


def test_tools_are_called(speaking: Server) -> None:
    (choice,) = speaking.chat("hi", row=2, tools=TOOLS).json["choices"]
    calls = choice["message"]["tool_calls"]
    assert [(each["function"]["name"], json.loads(each["function"]["arguments"])) for each in calls] == CALLS
    assert all(list(each) == ["id", "type", "function"] and each["type"] == "function" for each in calls)
    assert calls[0]["id"].startswith("chatcmpl-tool-") and calls[0]["id"] != calls[1]["id"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("so: ", "tool_calls")


def test_a_streams_first_event_is_the_role_alone(speaking: Server) -> None:
    answer = speaking.chat("hi", row=0, stream=True)
    first, second = answer.body.split(b"\n\n")[:2]
    assert first.endswith(b"} ") and second.endswith(b"}")
    role, *middle, done = answer.events
    assert role["choices"] == [{"index": 0, "delta": {"role": "assistant"}}] and "usage" not in role
    assert done == "[DONE]"
    deltas = [each["choices"][0]["delta"] for each in middle]
    assert all(list(each) == ["content", "reasoning_content"] for each in deltas)
    assert "".join(each["content"] for each in deltas) == SPOKEN[0]
    assert ["finish_reason" in each["choices"][0] for each in middle] == [False] * (len(middle) - 1) + [True]
    assert all(each["object"] == "chat.completion.chunk" for each in (role, *middle))


def test_a_streams_reasoning_and_calls(speaking: Server) -> None:
    thought = [each["choices"][0]["delta"] for each in speaking.chat("hi", row=1, stream=True).events[1:-1]]
    assert "".join(each["reasoning_content"] for each in thought) == "why not"
    assert "".join(each["content"] for each in thought) == "because"
    events = speaking.chat("hi", row=2, stream=True, tools=TOOLS).events[1:-1]
    calls = [call for each in events for call in each["choices"][0]["delta"].get("tool_calls", ())]
    for index, (name, arguments) in enumerate(CALLS):
        mine = [call for call in calls if call["index"] == index]
        assert mine[0]["function"]["name"] == name and mine[0]["id"].startswith("chatcmpl-tool-")
        assert all("id" not in call and "name" not in call["function"] for call in mine[1:])
        assert json.loads("".join(call["function"]["arguments"] for call in mine)) == arguments
    assert events[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_a_streams_usage(speaking: Server) -> None:
    events = speaking.chat("hi", row=0, stream=True, stream_options={"include_usage": True}).events
    assert events[-2]["choices"] == []
    assert events[-2]["usage"]["completion_tokens"] == len(SPOKEN[0].encode())
    always = {"include_usage": True, "continuous_usage_stats": True}
    role, *others = speaking.chat("hi", row=0, stream=True, stream_options=always).events[:-1]
    counted = [each["usage"]["completion_tokens"] for each in others]
    assert role["usage"]["completion_tokens"] == 0 < counted[0] and counted == sorted(counted)


def test_a_call_that_is_no_json_is_content(speaking: Server) -> None:
    assert speaking.chat("hi", row=3).json["choices"][0]["message"]["content"] == "a < b no JSON"


def test_max_tokens_by_either_name(speaking: Server) -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        body = speaking.chat("hi", row=0, **{name: 4}).json
        assert body["choices"][0]["message"]["content"] == SPOKEN[0][:4]
        assert body["choices"][0]["finish_reason"] == "length"


def test_prompt_token_ids_go_before_messages(speaking: Server) -> None:
    assert speaking.chat("hi", row=0, prompt_token_ids=[1, 2, 3]).json["usage"]["prompt_tokens"] == 3


def test_an_image_changes_the_answer_by_its_hash(scripted: Server) -> None:
    def answer(data: bytes) -> str:
        body = scripted.chat([{"type": "text", "text": "?"}, image_part(data)])
        assert body.status == 200, body.body
        return str(body.json["choices"][0]["message"]["content"])

    assert answer(png(3, 2)) == answer(png(3, 2)) != answer(png(3, 2, shade=9))


def test_a_failed_chat_is_an_error_response_or_a_stream_that_breaks_off(scripted: Server) -> None:
    assert scripted.chat("hi", row=FAILING_ROW).status == 400
    with pytest.raises(http.client.IncompleteRead) as broken:
        scripted.chat("hi", row=FAILING_ROW, stream=True)
    assert broken.value.partial == b""


REFUSED = {
    "no messages": ({"messages": []}, "no messages"),
    "a message without a role": ({"messages": [{"content": "x"}]}, "missing"),
    "an unknown field": ({"return_token_ids": True}, "extra_forbidden"),
    "a choice without tools": ({"tool_choice": "auto"}, "`tools` must be set"),
    "top_logprobs alone": ({"top_logprobs": 2}, "logprobs must be true"),
    "logprobs": ({"logprobs": True}, "`logprobs` is True"),
    "a tool's unknown field": (
        {"tools": [{"type": "function", "function": {"name": "f", "strict": True}}]},
        "extra_forbidden",
    ),
    "stream options without a stream": ({"stream_options": {}}, "can only be set if stream"),
    "an empty salt": ({"cache_salt": " "}, "cache_salt"),
    "an effort": ({"reasoning_effort": "max"}, "reasoning_effort"),
    "a part of another type": ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "input_audio"),
    "a distant image": (
        {
            "messages": [
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}]}
            ]
        },
        "fetches nothing",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(scripted: Server, name: str) -> None:
    body, words = REFUSED[name]
    answer = scripted.chat("hi", **body)
    assert answer.status == 400
    assert words in answer.json["message"]


# -- images ------------------------------------------------------------------------------------------------------------


def test_an_image_is_measured() -> None:
    assert (images.read(url(png(640, 7))).width, images.read(url(png(640, 7))).height) == (640, 7)
    jpeg = images.read(url(jpeg_head(33, 44), "jpeg"))
    assert (jpeg.width, jpeg.height) == (33, 44)


@pytest.mark.parametrize(
    ("kind", "lossless", "mode"),
    [
        ("PNG", False, "P"),
        ("JPEG", False, "RGB"),
        ("WEBP", False, "RGB"),
        ("webp", True, "RGB"),
        ("WEBP", False, "RGBA"),
    ],
)
def test_images_of_pillows_are_measured(kind: str, lossless: bool, mode: str) -> None:
    image = pytest.importorskip("PIL.Image", reason="needs the [qwen3-vl] extra")
    file = io.BytesIO()
    image.new(mode, (301, 17)).save(file, kind, **({"lossless": True} if lossless else {}))
    found = images.read(url(file.getvalue(), kind))
    assert (found.width, found.height) == (301, 17)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("file:///etc/passwd", "fetches nothing"),
        ("data:image/png;base64,%%%", "base64 cannot be read"),
        (url(b"GIF89a"), "neither PNG nor JPEG nor WebP"),
        (url(b"RIFF\x00\x00\x00\x00WEBPVP8 ", "WEBP"), "says no size"),
        (url(b"RIFF\x00\x00\x00\x00WEBPVP8 " + bytes(20), "WEBP"), "says no size"),
        (url(png(3, 2)[:20]), "says no size"),
        (url(png(0, 2)), "says no size"),
        (url(jpeg_head(1, 1)[:30], "jpeg"), "says no size"),
        (url(b"\xff\xd8\xff\xda\x00\x00" + bytes(40), "jpeg"), "says no size"),
    ],
)
def test_what_is_no_image(place: str, words: str) -> None:
    with pytest.raises(Refusal, match=words):
        images.read(place)


@given(st.binary(max_size=64))
def test_no_bytes_break_the_reader_of_images(data: bytes) -> None:
    for head in (
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff",
        *(b"RIFF1234WEBP" + kind for kind in (b"VP8 ", b"VP8L", b"VP8X")),
    ):
        try:
            found = images.read(url(head + data))
        except Refusal:
            continue
        assert found.width > 0 and found.height > 0


# -- the plain format --------------------------------------------------------------------------------------------------


def request(**fields: Any) -> ChatRequest:
    return ChatRequest.model_validate({"model": "m", "messages": [{"role": "user", "content": "hi"}]} | fields)


def merged(words: list[Word]) -> list[Word]:
    found: list[Word] = []
    for word in words:
        if found and found[-1].part is word.part is not Part.CALL:
            found[-1] = Word(word.part, found[-1].text + word.text)
        else:
            found.append(word)
    return found


@given(st.sampled_from(SPOKEN) | st.text('<>/thinktool_cal {}"ä', max_size=40), st.integers(0, 1 << 30))
def test_an_answer_reads_the_same_however_it_is_cut(text: str, seed: int) -> None:
    chat = PlainChat(PlainCodec(256))
    ids = list(text.encode())
    places = sorted(random.Random(seed).choices(range(len(ids) + 1), k=5))
    reader = chat.reader(request())
    cut = [w for a, b in pairwise([0, *places]) for w in reader.feed(ids[a:b], last=False)]
    cut += reader.feed(ids[places[-1] :], last=True)
    assert merged(cut) == merged(chat.reader(request()).feed(ids, last=True))


def test_a_prompt_has_a_line_for_each_role() -> None:
    chat = PlainChat(PlainCodec(256))
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "what is "}, image_part(png(3, 2))]},
    ]
    text = bytes(chat.prompt(request(messages=messages, tools=TOOLS))).decode()
    digest = images.read(url(png(3, 2))).sha256
    assert text.startswith('<|tools|>\n[{"name": "look"')
    rest = f"<|system|>\nbe brief\n<|user|>\nwhat is <image 3x2 sha256:{digest}>\n<|assistant|>\n"
    assert text.endswith(rest)
    assert "<|tools|>" not in bytes(chat.prompt(request(tools=TOOLS, tool_choice="none"))).decode()


def test_text_needs_a_vocabulary_of_bytes() -> None:
    with pytest.raises(Refusal, match="send token ids"):
        PlainCodec(64).encode("hello")


# -- gpt-oss's ---------------------------------------------------------------------------------------------------------

HARMONY = (
    "<|channel|>analysis<|message|>think é<|end|><|start|>assistant<|channel|>commentary to=functions.look "
    '<|constrain|>json<|message|>{"at": "sky"}<|end|><|start|>assistant<|channel|>final<|message|>Done 😀.'
)


@pytest.mark.harmony
@pytest.mark.parametrize("offered", [True, False])
def test_harmony_is_taken_apart(offered: bool) -> None:
    from harness.benchmarks.gpt_oss_120b import vocab
    from harness.serve.gpt_oss_chat import GptOssChat

    chat = GptOssChat()
    ids = vocab.encode(HARMONY)
    reader = chat.reader(request(tools=TOOLS) if offered else request())
    words = [w for i, token in enumerate(ids) for w in reader.feed([token], last=i == len(ids) - 1)]
    call = [Word(Part.CALL, "look"), Word(Part.ARGUMENTS, '{"at": "sky"}')] if offered else []
    assert merged(words) == [Word(Part.REASONING, "think é"), *call, Word(Part.CONTENT, "Done 😀.")]
    assert merged(chat.reader(request(tools=TOOLS)).feed(ids, last=True))[-1] == words[-1] or words


@pytest.mark.harmony
def test_what_is_not_harmony_is_told_as_text() -> None:
    from harness.benchmarks.gpt_oss_120b import vocab
    from harness.serve.gpt_oss_chat import GptOssChat

    ids = vocab.encode("just words 😀 and more")
    reader = GptOssChat().reader(request())
    words = [w for i, token in enumerate(ids) for w in reader.feed([token], last=i == len(ids) - 1)]
    assert merged(words) == [Word(Part.CONTENT, "just words 😀 and more")]
    assert GptOssChat().reader(request()).feed([], last=True) == []


@pytest.mark.harmony
def test_a_harmony_prompt_has_all_that_was_said() -> None:
    from harness.benchmarks.gpt_oss_120b import vocab
    from harness.serve.gpt_oss_chat import GptOssChat

    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "sky"}'}}
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "what is "}, image_part(png(3, 2))]},
        {"role": "assistant", "reasoning_content": "look first", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "blue"},
        {"role": "user", "content": "and now?"},
    ]
    chat = GptOssChat()
    text = vocab.decode(chat.prompt(request(messages=messages, tools=TOOLS, reasoning_effort="high")))
    assert isinstance(text, str)
    for part in (
        "Reasoning: high",
        "be brief",
        "type look",
        "what is <image 3x2 sha256:",
        "to=functions.look",
        '{"at": "sky"}',
        "<|start|>functions.look to=assistant<|channel|>commentary<|message|>blue<|end|>",
        "and now?<|end|><|start|>assistant",
    ):
        assert part in text, part
    assert chat.stop_ids == (200_002, 200_012)


@pytest.mark.harmony
@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "no messages"),
        ([{"role": "critic", "content": "x"}], "the role 'critic'"),
        ([{"role": "assistant", "tool_calls": [{"id": "1"}]}], "no function with a name"),
    ],
)
def test_what_harmony_has_no_place_for(messages: list[Any], words: str) -> None:
    from harness.serve.gpt_oss_chat import GptOssChat

    with pytest.raises(Refusal, match=words):
        GptOssChat().prompt(request(messages=messages))


@pytest.mark.harmony
@given(st.lists(st.integers(0, 201_087), max_size=30), st.booleans())
def test_streamed_text_is_the_whole_text(ids: list[int], skip: bool) -> None:
    from harness.benchmarks.gpt_oss_120b import vocab
    from harness.serve.texts import GptOssCodec

    decoder = GptOssCodec().decoder(skip_special=skip)
    text = "".join(decoder.feed([token], last=False) for token in ids) + decoder.feed([], last=True)
    kept = [token for token in ids if token < vocab.FIRST_SPECIAL or not skip]
    assert text.replace("\ufffd", "") == str(vocab.decode(kept)).replace("\ufffd", "")
