from __future__ import annotations

import base64
import io
import sys

import pytest
from PIL import Image

from harness.benchmarks.qwen3_vl_235b_a22b import images, pictures
from harness.errors import DatasetError, MissingError
from tests.benchmarks.qwen3_vl_235b_a22b.made import picture


def test_a_jpeg_is_encoded_anew_with_pillow_s_defaults() -> None:
    buffer = io.BytesIO()
    Image.open(io.BytesIO(picture("JPEG"))).resize((200, 150)).save(buffer, format="JPEG", quality=95)
    original = buffer.getvalue()
    kind, sent = images.round_trip(images.opened(original))
    assert kind == "JPEG"
    assert len(sent) < len(original)
    again = io.BytesIO()
    Image.open(io.BytesIO(original)).save(again, format="JPEG")
    assert sent == again.getvalue()
    assert Image.open(io.BytesIO(sent)).size == (200, 150)


@pytest.mark.parametrize(
    ("kind", "mode"), [("PNG", "RGB"), ("PNG", "P"), ("PNG", "RGBA"), ("WEBP", "RGB"), ("GIF", "P"), ("JPEG", "L")]
)
def test_a_picture_keeps_its_format_and_size(kind: str, mode: str) -> None:
    url = images.data_url(picture(kind, (41, 29), mode=mode))
    head, _, data = url.partition(",")
    assert head == f"data:image/{kind};base64"
    sent = Image.open(io.BytesIO(base64.b64decode(data)))
    assert (sent.size, sent.format) == ((41, 29), kind)


def test_a_picture_that_does_not_know_its_format_is_sent_as_jpeg() -> None:
    assert images.data_url(Image.new("RGB", (8, 8))).startswith("data:image/JPEG;base64,")


def test_media_types_are_in_upper_case_as_upstream_has_them() -> None:
    assert images.as_url("WEBP", "AA==") == "data:image/WEBP;base64,AA=="


@pytest.mark.parametrize("content", [b"", b"no picture", picture("JPEG")[:20]])
def test_what_is_no_picture(content: bytes) -> None:
    with pytest.raises(DatasetError, match=r"(?s)picture cannot be read.*where: row 7"):
        images.data_url(content, "row 7")


def test_a_picture_that_is_cut_off() -> None:
    cut = picture("PNG", (300, 200))[:-200]
    with pytest.raises(DatasetError, match="picture cannot be read"):
        images.data_url(cut)
    with pytest.raises(DatasetError, match="picture cannot be read"):
        images.decode(cut, "row 1")
    images.decode(picture("PNG", (300, 200)))


def test_a_picture_that_cannot_be_saved_as_what_it_is() -> None:
    with pytest.raises(DatasetError, match="RGBA"):
        images.round_trip(Image.new("RGBA", (8, 8)))


def test_base64_that_is_none() -> None:
    with pytest.raises(DatasetError, match=r"(?s)not base64.*row 3"):
        images.from_base64("no base64!", "row 3")


def test_pillow_is_asked_for_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingError, match=r"(?s)pillow is not installed.*qwen3-vl"):
        images.opened(picture)  # type: ignore[arg-type]  # never looked at


def test_the_package_s_pictures_are_as_they_were_published(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {(Image.open(io.BytesIO(pictures.load(name))).format) for name in pictures.NAMES}
    assert seen == {"JPEG", "PNG", "WEBP"}
    modes = {Image.open(io.BytesIO(pictures.load(name))).mode for name in pictures.NAMES}
    assert {"P", "RGB", "RGBA", "L"} <= modes
    assert min(pictures.NAMES, key=lambda name: len(pictures.load(name))) == pictures.SMALLEST
    pictures.load.cache_clear()
    monkeypatch.setitem(pictures._SHA256, "bee.png", "0" * 64)
    with pytest.raises(ValueError, match=r"bee\.png has the sha256"):
        pictures.load("bee.png")
