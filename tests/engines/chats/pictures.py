"""Images and chats for tests."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from PIL import Image


def noise(width: int, height: int, seed: int = 0) -> Image.Image:
    """An image of random colours."""
    values = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(values)


def encoded(image: Image.Image, image_format: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, image_format, **options)
    return file.getvalue()


def data_url(content: bytes, image_format: str = "PNG") -> str:
    return f"data:image/{image_format};base64,{base64.b64encode(content).decode()}"


def chat(*urls: str, text: str = "What is it?", system: str | None = "Answer in JSON.") -> dict[str, Any]:
    """A chat of a system message, a text and images."""
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}]
    parts += [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    first = [] if system is None else [{"role": "system", "content": system}]
    return {"messages": [*first, {"role": "user", "content": parts}]}


def picture_chat(width: int, height: int, seed: int = 0, text: str = "What is it?") -> dict[str, Any]:
    """A chat with a noisy image of that size."""
    return chat(data_url(encoded(noise(width, height, seed))), text=text)
