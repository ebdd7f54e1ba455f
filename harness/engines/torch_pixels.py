"""Images as the vision tower takes them: what transformers' Qwen2-VL processor makes of them, value by value.

An image is converted to RGB as Pillow does it (a palette is looked up, transparency is dropped), resized bicubically to
whole patches, scaled to -1..1, and cut in patches in the order in which the tower merges them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from harness.engines.chats.picture import MERGE, PATCH, UNREADABLE, Grid
from harness.engines.chats.problems import BAD_IMAGE, BadChat

if TYPE_CHECKING:
    from PIL.Image import Image

FRAMES: Final = 2
"""An image is a film of as many equal frames: the tower's patches have a length in time."""
MEAN: Final = 0.5
DEVIATION: Final = 0.5
PATCH_VALUES: Final = 3 * FRAMES * PATCH * PATCH

Float32Array = npt.NDArray[np.float32]

# In float64 and rounded once, then in float32, as the processor rescales and normalizes.
_VALUES: Final = ((np.arange(256) * (1 / 255)).astype(np.float32) - np.float32(MEAN)) / np.float32(DEVIATION)


def patches(image: Image, grid: Grid) -> Float32Array:
    """The patches (grid.rows * grid.columns, :data:`PATCH_VALUES`) of an image. Raises BadChat for a damaged one."""
    try:
        pixels = _pixels(image, grid)
    except UNREADABLE as error:
        raise BadChat(BAD_IMAGE, f"the image cannot be decoded: {error}") from error
    # rows of merged patches, patch in the merged one, pixel; the same of columns; colours
    cut = pixels.reshape(grid.rows // MERGE, MERGE, PATCH, grid.columns // MERGE, MERGE, PATCH, 3)
    ordered = _VALUES[cut.transpose(0, 3, 1, 4, 6, 2, 5)].reshape(grid.rows * grid.columns, 3, 1, PATCH * PATCH)
    return np.broadcast_to(ordered, (len(ordered), 3, FRAMES, PATCH * PATCH)).reshape(len(ordered), PATCH_VALUES)


def _pixels(image: Image, grid: Grid) -> npt.NDArray[np.uint8]:
    from PIL.Image import Resampling

    if "transparency" in image.info:
        image = image.convert("RGBA")  # in one step Pillow warns of a palette's transparency
    colours = image.convert("RGB")
    size = (grid.columns * PATCH, grid.rows * PATCH)
    return np.asarray(colours.resize(size, Resampling.BICUBIC))
