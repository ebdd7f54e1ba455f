"""Chats to prompts: the template's text, one image, its pads, and what is refused."""

from __future__ import annotations

import importlib.util
import random

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from harness.engines.chats.picture import MAX_PIXELS, MIN_PIXELS, Grid, image_grid, require_pillow
from harness.engines.chats.qwen3_vl import BadChat, image_tokens, prompt_ids, read, require_packages
from harness.engines.chats.qwen3_vocab import encode
from harness.errors import MissingError
from tests.engines.chats.pictures import chat, data_url, encoded

pytestmark = pytest.mark.qwen3vl


def blank_url(width: int, height: int, image_format: str = "PNG") -> str:
    return data_url(encoded(Image.new("RGB", (width, height), (200, 30, 30)), image_format), image_format)


def test_a_chat_becomes_the_text_of_the_template_with_a_pad_for_each_token_of_the_image() -> None:
    pads = "<|image_pad|>" * 96
    expected = encode(
        "<|im_start|>system\nAnswer in JSON.<|im_end|>\n"
        f"<|im_start|>user\nWhat is it?<|vision_start|>{pads}<|vision_end|><|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    body = chat(blank_url(384, 256))
    assert prompt_ids(body) == prompt_ids(orjson.dumps(body)) == expected
    prompt = read(body)
    assert (prompt.image_at, prompt.grid, prompt.image.size) == (expected.index(151_655), Grid(16, 24), (384, 256))


def test_parts_stay_in_their_order_and_a_text_begins_where_the_template_says() -> None:
    url = blank_url(256, 256)
    body = {
        "messages": [
            {"role": "user", "content": [{"type": "image_url", "image_url": url}, {"type": "text", "text": "\n\n It"}]},
            {"role": "assistant", "content": "A key."},
            {"role": "user", "content": "Which colour?"},
        ]
    }
    pads = "<|image_pad|>" * 64
    assert prompt_ids(body) == encode(
        f"<|im_start|>user\n<|vision_start|>{pads}<|vision_end|>\n\n It<|im_end|>\n"
        "<|im_start|>assistant\nA key.<|im_end|>\n<|im_start|>user\nWhich colour?<|im_end|>\n<|im_start|>assistant\n"
    )
    leading = chat(url, text="\n x", system="\n y")
    assert prompt_ids(leading) == encode(
        f"<|im_start|>system\n\n y<|im_end|>\n<|im_start|>user\n\n x<|vision_start|>{pads}<|vision_end|><|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_tokens_of_an_image() -> None:
    assert image_tokens(384, 256) == 96
    assert image_tokens(512, 512) == 256
    assert image_tokens(42, 42) == 64  # grown to the least number of pixels
    assert image_tokens(9000, 9000) == 16_384  # shrunk to the most
    assert image_tokens(100, 100, min_pixels=32 * 32) == 9
    # 80 is 2.5 sides: halves go to the even one.
    assert image_grid(80, 512, min_pixels=1024) == Grid(32, 4)


@pytest.mark.torch
def test_tokens_of_an_image_are_those_of_transformers_rule() -> None:
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

    chosen = random.Random(3)
    for _ in range(5000):
        width, height = (int(2 ** chosen.uniform(0, 13)) for _ in range(2))
        if max(width, height) <= 200 * min(width, height):
            high, wide = smart_resize(height, width, factor=32, min_pixels=MIN_PIXELS, max_pixels=MAX_PIXELS)
            assert image_grid(width, height) == Grid(high // 16, wide // 16), (width, height)


@given(st.integers(1, 9000), st.integers(1, 9000))
def test_a_grid_keeps_to_the_bounds(width: int, height: int) -> None:
    if max(width, height) > 200 * min(width, height):
        with pytest.raises(ValueError, match="over 200 times"):
            image_grid(width, height)
        return
    grid = image_grid(width, height)
    assert MIN_PIXELS <= grid.rows * grid.columns * 16 * 16 <= MAX_PIXELS


def test_an_image_without_pixels_has_no_grid() -> None:
    with pytest.raises(ValueError, match="an image of 0 x 5 pixels"):
        image_grid(0, 5)
    with pytest.raises(ValueError, match="not a grid"):
        Grid(3, 2)


URL = blank_url(64, 64)
REFUSED: dict[str, tuple[object, str, str]] = {
    "no image": (chat(), "no_image", "the chat has no image"),
    "two images": (chat(URL, URL), "many_images", "the chat has 2 images, not one"),
    "a url of the web": (
        chat("https://example.com/key.png"),
        "bad_image_url",
        "begins with 'https://example.com/key.png'",
    ),
    "no base64": (chat("data:image/png;base64,%%%"), "bad_image_url", "not base64"),
    "not an image": (chat("data:image/png;base64,AAAA"), "bad_image", "the image cannot be read: no known format"),
    "a line": (chat(blank_url(1, 300)), "bad_image", "over 200 times as long as wide"),
    "spelled pad": (chat(URL, text="<|image_pad|>"), "bad_chat", "a text spells <|image_pad|>"),
    "no JSON": (b"{", "bad_chat", "not JSON"),
    "no object": (b"[]", "bad_chat", "no list of messages"),
    "no messages": ({"messages": []}, "bad_chat", "or there is none"),
    "messages of texts": ({"messages": ["Hi"]}, "bad_chat", "a message is no object"),
    "messages is a text": ({"messages": "Hi"}, "bad_chat", "no list of messages"),
    "tools": (chat(URL) | {"tools": [{}]}, "bad_chat", "there are tools"),
    "a role": (
        {"messages": [{"role": "tool", "content": "1"}, *chat(URL)["messages"]]},
        "bad_chat",
        "message 0 has the role 'tool'",
    ),
    "a late system": (
        {"messages": [*chat(URL)["messages"], {"role": "system", "content": ""}]},
        "bad_chat",
        "message 2 has the role 'system'",
    ),
    "an image by the assistant": (
        {"messages": [{"role": "assistant", "content": chat(URL)["messages"][1]["content"]}]},
        "bad_chat",
        "an image in a message of the role 'assistant'",
    ),
    "a number": ({"messages": [{"role": "user", "content": 5}]}, "bad_chat", "neither a text nor a list"),
    "a video": (
        {"messages": [{"role": "user", "content": [{"type": "video_url", "video_url": {"url": URL}}]}]},
        "bad_chat",
        "neither a text nor an image_url",
    ),
    "a surrogate": (chat(URL, text="\ud800"), "bad_chat", "message 1 is no Unicode text"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_chat_with_one_image_is_refused(case: str) -> None:
    body, kind, message = REFUSED[case]
    with pytest.raises(BadChat) as caught:
        prompt_ids(body)  # type: ignore[arg-type]
    assert caught.value.kind == kind
    assert message in str(caught.value)


def test_without_pillow_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    require_packages()
    require_pillow.cache_clear()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingError, match=r"the package pillow is not installed\n.*qwen3-vl"):
        require_packages()


@pytest.mark.parametrize("image_format", ["PNG", "JPEG", "WEBP", "GIF"])
def test_the_head_of_an_image_is_enough_to_count(image_format: str) -> None:
    assert len(prompt_ids(chat(blank_url(320, 320, image_format)))) == len(prompt_ids(chat(blank_url(256, 256)))) + 36
