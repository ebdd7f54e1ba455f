"""Pictures as the benchmark sends them: opened and written again by Pillow as upstream does, never resized.

Upstream decodes a picture and saves it in the format it came in with Pillow's defaults, so that a JPEG is encoded anew
and its bytes depend on Pillow's version. Whatever arrives here as base64 has been through that already.
"""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from harness.engines.chats.picture import UNREADABLE
from harness.errors import DatasetError, MissingError

if TYPE_CHECKING:
    from PIL.Image import Image

INSTALL: Final = "pip install '.[qwen3-vl]'"
FORMAT_UNKNOWN: Final = "JPEG"
"""What a picture is saved as that does not know what it was, as the v6.1 client has it."""


def pillow_version() -> str:
    """The version of Pillow, on which the bytes of pictures depend. MissingError where it is not installed."""
    try:
        import PIL
    except ImportError as error:
        raise MissingError("the package pillow is not installed", mend=INSTALL) from error
    return PIL.__version__


def opened(content: bytes, where: object = None) -> Image:
    """A picture whose header was read; its pixels are decoded when they are asked for. Raises DatasetError."""
    pillow_version()
    from PIL import Image

    with reading(where):
        return Image.open(io.BytesIO(content))


@contextmanager
def reading(where: object = None) -> Iterator[None]:
    """Whatever Pillow raises for a picture that is damaged is a DatasetError."""
    from PIL.Image import DecompressionBombError

    try:
        yield
    except (*UNREADABLE, DecompressionBombError) as error:
        raise _unreadable(str(error) or type(error).__name__, where) from error


def round_trip(image: Image, where: object = None) -> tuple[str, bytes]:
    """Format (upper case) and bytes of a picture as upstream sends it. Raises DatasetError for one that is damaged."""
    kind = image.format or FORMAT_UNKNOWN
    buffer = io.BytesIO()
    with reading(where):
        image.save(buffer, format=kind)
    return kind, buffer.getvalue()


def data_url(content: bytes | Image, where: object = None) -> str:
    """The data URL of a picture, or of a picture's file, after the round trip."""
    image = opened(content, where) if isinstance(content, bytes) else content
    kind, sent = round_trip(image, where)
    return as_url(kind, base64.b64encode(sent).decode("ascii"))


def as_url(kind: str, in_base64: str) -> str:
    """The data URL of what the catalogue holds in base64."""
    return f"data:image/{kind};base64,{in_base64}"


def from_base64(text: str, where: object = None) -> bytes:
    """The bytes that base64 stands for. Raises DatasetError where it is none."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _unreadable(f"not base64: {error}", where) from error


def decode(content: bytes, where: object = None) -> None:
    """Decodes every pixel of a picture. Raises DatasetError where that cannot be done."""
    image = opened(content, where)
    with reading(where):
        image.load()


def _unreadable(why: str, where: object) -> DatasetError:
    return DatasetError(
        f"the picture cannot be read: {why}",
        where=where,
        expected="a picture that Pillow opens",
        mend="fetch the data set again",
    )
