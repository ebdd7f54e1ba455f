"""The image of a chat: read from its data URL, and the size at which Qwen's processor hands it to the vision tower."""

from __future__ import annotations

import base64
import binascii
import functools
import importlib.util
import io
import math
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.engines.chats.problems import BAD_IMAGE, BAD_IMAGE_URL, BadChat
from harness.engines.chats.qwen3_vocab import INSTALL
from harness.errors import MissingError

if TYPE_CHECKING:
    from PIL.Image import Image

PATCH: Final = 16
"""Pixels of a patch's side."""
MERGE: Final = 2
"""Patches of a side that the vision tower makes one token of."""
SIDE: Final = PATCH * MERGE
MIN_PIXELS: Final = 256 * 256
MAX_PIXELS: Final = 4096 * 4096
"""The bounds in ``preprocessor_config.json`` of the published checkpoint (``size``: shortest and longest edge)."""
UNREADABLE: Final = (
    OSError,
    ValueError,
    SyntaxError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    OverflowError,
    struct.error,
    zlib.error,
)
"""What Pillow's decoders raise for damaged files."""
_MOST_ELONGATED: Final = 200


@dataclass(frozen=True, slots=True)
class Grid:
    """An image as the vision tower sees it: ``rows`` by ``columns`` patches, both even."""

    rows: int
    columns: int

    def __post_init__(self) -> None:
        if self.rows < MERGE or self.columns < MERGE or self.rows % MERGE or self.columns % MERGE:
            raise ValueError(f"not a grid of patches: {self}")

    @property
    def tokens(self) -> int:
        """How many tokens it is in a prompt."""
        return self.rows * self.columns // MERGE**2


def image_grid(width: int, height: int, min_pixels: int = MIN_PIXELS, max_pixels: int = MAX_PIXELS) -> Grid:
    """The patches of an image of ``width`` by ``height`` pixels, by the rule of transformers' Qwen2-VL processor.

    Sides become multiples of :data:`SIDE`, in about the old proportion, with ``min_pixels`` to ``max_pixels`` in all.
    Raises ValueError for an image that has no pixels or is over 200 times as long as it is wide.
    """
    short, long = sorted((width, height))
    if short < 1:
        raise ValueError(f"an image of {width} x {height} pixels")
    if long / short > _MOST_ELONGATED:
        raise ValueError(f"an image of {width} x {height} pixels is over {_MOST_ELONGATED} times as long as wide")
    # round: halves go to the even side, as in the processor.
    rows, columns = round(height / SIDE), round(width / SIDE)
    if rows * columns * SIDE**2 > max_pixels:
        shrink = math.sqrt(height * width / max_pixels)
        rows = max(1, math.floor(height / shrink / SIDE))
        columns = max(1, math.floor(width / shrink / SIDE))
    elif rows * columns * SIDE**2 < min_pixels:
        grow = math.sqrt(min_pixels / (height * width))
        rows, columns = math.ceil(height * grow / SIDE), math.ceil(width * grow / SIDE)
    return Grid(rows * MERGE, columns * MERGE)


def image_tokens(width: int, height: int, min_pixels: int = MIN_PIXELS, max_pixels: int = MAX_PIXELS) -> int:
    """How many tokens an image of ``width`` by ``height`` pixels is in a prompt. Raises ValueError, see the grid."""
    return image_grid(width, height, min_pixels, max_pixels).tokens


def open_image(url: str) -> Image:
    """The image of a data URL. Only its head is read: its pixels are decoded when they are asked for.

    Raises BadChat, and MissingError without Pillow.
    """
    data = _data(url)
    require_pillow()
    from PIL import Image

    try:
        return Image.open(io.BytesIO(data))
    except (*UNREADABLE, Image.DecompressionBombError) as error:
        raise BadChat(BAD_IMAGE, f"the image cannot be read: {_plain(error)}") from error


@functools.cache
def require_pillow() -> None:
    """Raises MissingError where Pillow is not installed."""
    if importlib.util.find_spec("PIL") is None:
        raise MissingError("the package pillow is not installed", mend=INSTALL)


def _data(url: str) -> bytes:
    head, comma, data = url.partition(",")
    if not head.startswith("data:image/") or not head.endswith(";base64") or not comma:
        raise BadChat(BAD_IMAGE_URL, f"the image's url begins with {url[:30]!r}, not with data:image/...;base64,")
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadChat(BAD_IMAGE_URL, f"the image's url is not base64: {error}") from error


def _plain(error: Exception) -> str:
    """Without the address of an object, which is another each time."""
    return "no known format" if "<_io.BytesIO" in str(error) else str(error)
