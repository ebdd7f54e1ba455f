"""What is wrong with a chat: the kind that a failed request has, and a sentence."""

from __future__ import annotations

from typing import Final

BAD_CHAT: Final = "bad_chat"
"""Not a chat of the form that the model's template takes."""
NO_IMAGE: Final = "no_image"
MANY_IMAGES: Final = "many_images"
BAD_IMAGE: Final = "bad_image"
BAD_IMAGE_URL: Final = "bad_image_url"


class BadChat(ValueError):
    """A chat that cannot be asked; ``kind`` is one of the words of this module."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
