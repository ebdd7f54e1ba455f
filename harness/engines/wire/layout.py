"""The shapes of frames that both ends know."""

from __future__ import annotations

import struct
from typing import Final

CHUNK_BYTES: Final = 1 << 20
"""About how much one frame holds: large enough to be cheap, small enough to overlap with work at the other end."""
INT64: Final = 8
INT32: Final = 4
TOKENS_IN_CHUNK: Final = CHUNK_BYTES // (2 * INT64 + INT32)

ONE_REQUEST: Final = struct.Struct("<4q")
ONE_TOKEN: Final = struct.Struct("<3qi")
ONE_ANSWER: Final = struct.Struct("<5q")
ONE_CHAT: Final = struct.Struct("<3q")
CHATS_IN_CHUNK: Final = CHUNK_BYTES // (2 * INT64)

PROMPT_TOKENS_TOLD: Final = 1
CACHED_TOKENS_TOLD: Final = 2
"""Bits of the first number of replies: which of the columns that may be absent are there."""
