"""Where the answer stands in what the model wrote.

The reference's evaluator decides what counts (mlcommons/inference language/gpt-oss-120b/eval_accuracy.py); these
functions find the same strings. All take and give plain text with special tokens spelled out.
"""

from __future__ import annotations

import re

# At temperature 1 the model sometimes puts junk between the channel's name and the message token.
_FINAL_HEADER = re.compile(r"<\|channel\|>final[^<]*<\|message\|>")
_RETURN = "<|return|>"
_BOLD = re.compile(r"\*\*([^*]+)\*\*")

_BOXED_NUMBER = re.compile(r"\\boxed\{\s*(\d+)\s*\}")
# A point behind the number disqualifies it, whether it is a decimal point or ends the sentence.
_STATED_NUMBER = re.compile(r"Answer:\s*(\d+)\b(?!\.)", re.IGNORECASE)
_AIME_NUMBERS = range(1000)
_MAX_DIGITS = 4300
"""Longer numbers Python refuses to convert; they are out of range in any case."""

_PYTHON_BLOCK = re.compile(r"```python(.*?)```", re.DOTALL)
_BLOCK = re.compile(r"```(.*?)```", re.DOTALL)
_LANGUAGE = re.compile(r"^(?:python|py)\s*\n", re.IGNORECASE)

_LEADING_LETTER = re.compile(r"[^A-Z]*([A-D])(?![A-Z])", re.IGNORECASE)
_STATED_LETTER = re.compile(r"\bANSWER\s*(?:[:.]\s*)?([A-D])\b", re.IGNORECASE)
_LAST_LETTER = re.compile(r"\b(?:FINAL\s*)?ANSWER\b\s*(?:[:=]\s*)?(?:\(\s*)?([A-D])(?![A-Z])", re.IGNORECASE)


def final_part(text: str) -> str:
    """What follows the first header of the final channel, up to the return token or the end.

    The whole text where there is no such header. Without blanks around it.
    """
    text = text.strip()
    header = _FINAL_HEADER.search(text)
    if header is None:
        return text
    return text[header.end() :].partition(_RETURN)[0].strip()


def has_final_part(text: str) -> bool:
    """Whether the model has begun its final channel."""
    return _FINAL_HEADER.search(text) is not None


def aime_number(text: str) -> int | None:
    """The last boxed number of the whole text, else the last ``Answer: n``; None where it is not in 0..999."""
    found = _BOXED_NUMBER.findall(text) or _STATED_NUMBER.findall(text.strip())
    if not found or len(found[-1]) > _MAX_DIGITS:
        return None
    number = int(found[-1])
    return number if number in _AIME_NUMBERS else None


def choice_letter(text: str) -> str | None:
    """A, B, C or D: what leads the final part, else its first ``Answer: X``, else the last one of the whole text."""
    final = _unescaped(_unwrapped(_BOLD.sub(r"\1", final_part(text)))).strip()
    found = _LEADING_LETTER.match(final) or _STATED_LETTER.search(final)
    if found is not None:
        return found[1].upper()
    letters: list[str] = _LAST_LETTER.findall(_unescaped(text.strip()))
    return letters[-1].upper() if letters else None


def program(text: str) -> str | None:
    """The last Python block of the final part, else its last block of any kind; else the same of the whole text."""
    text = text.strip()
    final = final_part(text)
    found = _last_block(final)
    return _last_block(text) if found is None and final != text else found


def _last_block(text: str) -> str | None:
    python: list[str] = _PYTHON_BLOCK.findall(text)
    if python:
        return python[-1].strip()
    blocks: list[str] = _BLOCK.findall(text)
    return _LANGUAGE.sub("", blocks[-1].strip()) if blocks else None


def _unwrapped(text: str) -> str:
    """Without the brackets of a list of one string, as some answers come."""
    if text.startswith(("['", '["')) and text.endswith(("']", '"]')):
        return text[2:-2].strip()
    return text


def _unescaped(text: str) -> str:
    """With line ends and apostrophes that were written as escapes."""
    return text.replace(r"\n", "\n").replace(r"\'", "'")
