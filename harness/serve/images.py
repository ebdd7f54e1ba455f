"""Images of a chat whose model sees none: PNG, JPEG or WebP in a ``data:`` URL, which are checked and measured."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import struct
from dataclasses import dataclass
from typing import Final

from harness.serve.refusal import Refusal

_URL: Final = re.compile(r"data:image/[\w.+-]+;base64,", re.ASCII | re.IGNORECASE)
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_JPEG: Final = b"\xff\xd8\xff"
_WEBP: Final = re.compile(rb"RIFF....WEBP(VP8 |VP8L|VP8X)", re.DOTALL)
_IHDR: Final = struct.Struct(">4x4sII")
_WEBP_HEAD: Final = 30
"""Bytes, up to where each kind of first chunk has told its size."""
_VP8_START: Final = b"\x9d\x01\x2a"
_VP8L_SIGN: Final = 0x2F
_FRAME_MARKERS: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""JPEG's start-of-frame markers, behind which height and width stand."""


@dataclass(frozen=True, slots=True)
class Image:
    """What an image is; ``sha256`` is over its file's bytes."""

    width: int
    height: int
    sha256: str


def read(url: str) -> Image:
    """The image of a ``data:`` URL. Raises Refusal for another URL, and for what is none of the three."""
    head = _URL.match(url)
    if head is None:
        raise Refusal(f"an image must be a data: URL of base64, not {url[:40]!r}: this server fetches nothing")
    try:
        data = base64.b64decode(url[head.end() :], validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refusal(f"an image's base64 cannot be read: {error}") from None
    size = _size(data)
    if size is None or 0 in size:
        raise Refusal("an image is neither PNG nor JPEG nor WebP, or says no size")
    return Image(*size, hashlib.sha256(data).hexdigest())


def _size(data: bytes) -> tuple[int, int] | None:
    if data.startswith(_PNG):
        return _png_size(data)
    return _jpeg_size(data) if data.startswith(_JPEG) else _webp_size(data)


def _webp_size(data: bytes) -> tuple[int, int] | None:
    """From the first chunk, of which there are three kinds: with losses, without, and extended."""
    found = _WEBP.match(data)
    if found is None or len(data) < _WEBP_HEAD:
        return None
    if found[1] == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return (width & 0x3FFF, height & 0x3FFF) if data[23:26] == _VP8_START else None
    if found[1] == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return ((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1) if data[20] == _VP8L_SIGN else None
    return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1


def _png_size(data: bytes) -> tuple[int, int] | None:
    if len(data) < len(_PNG) + _IHDR.size:
        return None
    kind, width, height = _IHDR.unpack_from(data, len(_PNG))
    return (width, height) if kind == b"IHDR" else None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """From the first frame header: segments are a marker and, behind it, a length that counts itself."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in _FRAME_MARKERS:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 2 + int(struct.unpack_from(">H", data, at + 2)[0])
    return None
