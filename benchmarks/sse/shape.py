"""The bytes of the test server's answers: trtllm-serve's ``/v1/completions``, made once, before anything is measured.

A streamed answer is a list of pieces, one for each HTTP chunk that the server would write: the headers go out with the
first chunk of tokens; the usage chunk, ``[DONE]`` and the end of the body follow the last. Two flavours have the same
number of bytes in every chunk: token ids (``detokenize`` false), and text for clients that read nothing else.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Final

MODEL: Final = "gpt-oss-120b"
VOCABULARY: Final = 200_000
ENDED: Final = b"0\r\n\r\n"
"""What ends a body in chunks; no other chunk of these answers ends so."""
STREAM_HEADERS: Final = (
    b"HTTP/1.1 200 OK\r\ndate: Mon, 01 Jun 2026 12:00:00 GMT\r\nserver: uvicorn\r\n"
    b"content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
)
WHOLE_HEADERS: Final = (
    "HTTP/1.1 200 OK\r\ndate: Mon, 01 Jun 2026 12:00:00 GMT\r\nserver: uvicorn\r\n"
    "content-length: {}\r\ncontent-type: application/json\r\n\r\n"
)


@dataclass(frozen=True)
class Shape:
    """An answer: ``chunks`` of ``ids`` tokens each."""

    chunks: int
    ids: int

    @property
    def tokens(self) -> int:
        """Tokens of a whole answer."""
        return self.chunks * self.ids

    def __str__(self) -> str:
        return f"{self.chunks:,} x {self.ids}"

    @classmethod
    def parse(cls, text: str) -> Shape:
        """From ``65x20``."""
        chunks, _, ids = text.partition("x")
        return cls(int(chunks), int(ids))


def token_ids(n: int) -> list[int]:
    """The ids of every answer of n tokens: always the same, so that a client's can be held against them."""
    rng = random.Random(n)
    return [rng.randrange(1_000, VOCABULARY) for _ in range(n)]


def letters(tokens: int, ids: int) -> int:
    """How long the text of such an answer is."""
    answer = token_ids(tokens)
    return sum(len(_letters(answer[first : first + ids])) for first in range(0, tokens, ids))


def prompt_ids(row: int, n: int) -> list[int]:
    """The prompt of a row."""
    rng = random.Random(-1 - row)
    return [rng.randrange(VOCABULARY) for _ in range(n)]


def streamed(tokens: int, ids: int, *, as_text: bool) -> list[bytes]:
    """The pieces of a streamed answer of ``tokens`` tokens, ``ids`` of them in a chunk."""
    answer = token_ids(tokens)
    pieces = []
    for first in range(0, tokens, ids):
        last = first + ids >= tokens
        pieces.append(_chunk(_event(answer[first : first + ids], "length" if last else None, as_text)))
    usage = _document([], {"prompt_tokens": 1, "total_tokens": 1 + tokens, "completion_tokens": tokens})
    pieces[0] = STREAM_HEADERS + pieces[0]
    pieces[-1] += _chunk(f"data: {usage}\n\n".encode()) + _chunk(b"data: [DONE]\n\n") + ENDED
    return pieces


def whole(tokens: int, *, as_text: bool) -> bytes:
    """The same answer, not streamed."""
    usage = {"prompt_tokens": 1, "total_tokens": 1 + tokens, "completion_tokens": tokens}
    body = _document([_choice(token_ids(tokens), "length", as_text)], usage)
    return (WHOLE_HEADERS.format(len(body)) + body).encode()


def _event(ids: list[int], finish: str | None, as_text: bool) -> bytes:
    return f"data: {_document([_choice(ids, finish, as_text)], None)}\n\n".encode()


def _choice(ids: list[int], finish: str | None, as_text: bool) -> dict[str, object]:
    return {
        "index": 0,
        "text": _letters(ids) if as_text else "",
        "token_ids": None if as_text else ids,
        "logprobs": None,
        "finish_reason": finish,
        "stop_reason": None,
        "avg_decoded_tokens_per_iter": 1.0,
    }


def _letters(ids: list[int]) -> str:
    """As text, "null" stands where the ids were, and letters make up for the rest."""
    return "x" * (len(_json(ids)) - len("null"))


def _document(choices: list[dict[str, object]], usage: dict[str, int] | None) -> str:
    return _json(
        {
            "id": "cmpl-00112233445566778899aabbccddeeff",
            "object": "text_completion",
            "created": 1_780_315_200,
            "model": MODEL,
            "choices": choices,
            "usage": usage,
        }
    )


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
