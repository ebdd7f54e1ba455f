"""Pixels against transformers' image processor, value by value, and damaged images."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import pytest

from harness.engines.chats.picture import Grid, image_grid, open_image
from harness.engines.chats.problems import BAD_IMAGE, BadChat
from tests.engines.chats.pictures import data_url, encoded, noise

pytest.importorskip("torch", reason="needs the [torch] extra")
from PIL import Image

from harness.engines.torch_pixels import PATCH_VALUES, patches

pytestmark = [pytest.mark.torch, pytest.mark.qwen3vl]


@pytest.fixture(scope="module")
def processor() -> Any:
    import transformers

    return transformers.Qwen2VLImageProcessorPil(
        size={"shortest_edge": 65_536, "longest_edge": 16_777_216},
        patch_size=16,
        temporal_patch_size=2,
        merge_size=2,
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
    )


def palette() -> Image.Image:
    image = noise(120, 90, 3).quantize(32)
    image.info["transparency"] = bytes(range(0, 256, 8))
    return image


def alpha() -> Image.Image:
    image = noise(90, 200, 4).convert("RGBA")
    image.putalpha(noise(90, 200, 5).convert("L"))
    return image


IMAGES: dict[str, tuple[bytes, str]] = {
    "JPEG": (encoded(noise(333, 251), "JPEG"), "JPEG"),
    "grey JPEG": (encoded(noise(100, 80).convert("L"), "JPEG"), "JPEG"),
    "CMYK JPEG": (encoded(noise(100, 80).convert("CMYK"), "JPEG"), "JPEG"),
    "WEBP": (encoded(noise(640, 130), "WEBP"), "WEBP"),
    "WEBP with alpha": (encoded(alpha(), "WEBP"), "WEBP"),
    "PNG": (encoded(noise(512, 512)), "PNG"),
    "palette": (encoded(noise(77, 70).quantize(16)), "PNG"),
    "palette with transparency": (encoded(palette()), "PNG"),
    "alpha": (encoded(alpha()), "PNG"),
    "grey with alpha": (encoded(alpha().convert("LA")), "PNG"),
    "black and white": (encoded(noise(64, 64).convert("1")), "PNG"),
    "16 bit": (encoded(Image.fromarray(np.arange(64 * 64, dtype=np.uint16).reshape(64, 64) * 16)), "PNG"),
    "a pixel": (encoded(noise(1, 1)), "PNG"),
    "a line": (encoded(noise(3, 600)), "PNG"),
}


@pytest.mark.parametrize("name", IMAGES)
def test_values_are_those_of_the_processor(name: str, processor: Any) -> None:
    content, image_format = IMAGES[name]
    image, again = (open_image(data_url(content, image_format)) for _ in range(2))
    grid = image_grid(image.width, image.height)
    found = patches(image, grid)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Palette images with Transparency", UserWarning)
        expected = processor(images=[again], return_tensors="np")
    assert expected["image_grid_thw"].tolist() == [[1, grid.rows, grid.columns]]
    assert found.shape == (grid.rows * grid.columns, PATCH_VALUES)
    assert found.dtype == np.float32
    assert np.array_equal(found, expected["pixel_values"])


def test_an_image_above_the_bounds_is_shrunk(processor: Any) -> None:
    image = noise(150, 100)
    found = patches(image, image_grid(150, 100, 1024, 4096))
    expected = processor(images=[image], size={"shortest_edge": 1024, "longest_edge": 4096}, return_tensors="np")
    assert np.array_equal(found, expected["pixel_values"])


@pytest.mark.parametrize("name", ["JPEG", "WEBP", "PNG", "palette"])
def test_damaged_images_are_told_or_read_and_never_end_anything(name: str) -> None:
    content, image_format = IMAGES[name]
    chosen = random.Random(name)
    refused = 0
    for _ in range(60):
        damaged = bytearray(content)
        if chosen.random() < 0.5:
            del damaged[chosen.randrange(len(damaged)) :]
        for _ in range(chosen.randrange(1, 20)):
            if damaged:
                damaged[chosen.randrange(len(damaged))] = chosen.randrange(256)
        try:
            patches(open_image(data_url(bytes(damaged), image_format)), Grid(4, 4))
        except BadChat as problem:
            assert problem.kind == BAD_IMAGE
            refused += 1
    assert refused > 10
