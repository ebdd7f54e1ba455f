"""A request that is not served, told in the server's error shape."""

from __future__ import annotations

BAD_REQUEST = 400
NOT_FOUND = 404


class Refusal(Exception):
    """Becomes an error response of ``status``, of trtllm-serve's shape; ``kind`` is what it calls ``type``."""

    def __init__(self, message: str, *, status: int = BAD_REQUEST, kind: str = "BadRequestError") -> None:
        self.message = message
        self.status = status
        self.kind = kind
        super().__init__(message)
