"""Pictures as text: inside a page, where they follow its colours, and as files of their own, SVG and PNG."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Final

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from harness.report.page.paper import PAPER, STYLE

PNG_DPI: Final = 144
FONTS: Final = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'Helvetica Neue', Arial, sans-serif"

_NOTHING_OF_THE_DAY: Final = {"Date": None, "Creator": None, "Format": None, "Type": None}
_HEAD: Final = re.compile(r"^.*?(?=<svg\b)|<metadata>.*?</metadata>|<style\b.*?</style>|<!--.*?-->", re.DOTALL)
_FAMILY: Final = re.compile(r"font-family: [^;\"]+(; )?")
_LEVEL: Final = re.compile(r' transform="rotate\(-0 [^"]*"')
_DIGITS: Final = re.compile(r"(\d\.\d)\d+")
_PATH: Final = re.compile(r'(?<= d=")[MLz\d.\s-]*(?=")')
"""Straight lines alone."""
_TAG: Final = re.compile(r"<[^>]*>")
_BLANKS: Final = re.compile(r"\s*\n\s*")
_ID: Final = re.compile(r' id="([^"]*)"')
_ASKED_FOR: Final = re.compile(r'(?:url\(#|href="#)([^)"]+)')
_OPENING: Final = re.compile(r"<svg\b[^>]*>")
_VIEW_BOX: Final = re.compile(r'viewBox="([^"]*)"')


def inline(figure: Figure, key: str, title: str, description: str) -> Markup:
    """A picture for a page: colours are the page's variables, ids begin with ``key``, letters are letters.

    ``title`` and ``description`` are what is read out in its place.
    """
    text = _slim(_saved(figure))
    for name, colour in PAPER.items():
        text = text.replace(colour, f"var(--{name})")
    return Markup(_opened(_own_ids(text, key), key, title, description))  # noqa: S704 - matplotlib's own, its texts escaped by it


def standalone(figure: Figure, title: str, description: str) -> str:
    """A picture as an SVG file of its own, in the colours of paper."""
    text = _own_ids(_slim(_saved(figure)), "plot")
    opened = _opened(text, "plot", title, description).replace("<svg ", f'<svg font-family="{FONTS}" ', 1)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{opened}\n'


def png(figure: Figure) -> bytes:
    """A picture as a PNG file."""
    written = io.BytesIO()
    with mpl.rc_context(STYLE):
        figure.savefig(written, format="png", dpi=PNG_DPI, metadata={"Software": None})
    return written.getvalue()


def _saved(figure: Figure) -> str:
    written = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(written, format="svg", metadata=_NOTHING_OF_THE_DAY)
    return written.getvalue()


def _slim(text: str) -> str:
    """Without what says nothing: comments, metadata, fonts, digits below what can be seen, groups, most ids."""
    text = _ID.sub(_only_if_asked_for(text), _HEAD.sub("", text))
    text = _PATH.sub(_shorter, text)
    text = _TAG.sub(lambda tag: _DIGITS.sub(r"\1", tag[0]), _LEVEL.sub("", _FAMILY.sub("", text)))
    if "<g " not in text:  # groups that say nothing
        text = text.replace("<g>", "").replace("</g>", "").replace("<g/>", "")
    return _BLANKS.sub("\n", text).strip()


def _shorter(path: re.Match[str]) -> str:
    """A path whose points follow each other without a word: a line is what is meant where nothing is said."""
    return re.sub(r"\s*\bL ", " ", path[0]).strip()


def _only_if_asked_for(text: str) -> Callable[[re.Match[str]], str]:
    asked = set(_ASKED_FOR.findall(text))
    return lambda found: found[0] if found[1] in asked else ""


def _own_ids(text: str, key: str) -> str:
    """Ids made unique by ``key``, and what asks for them."""
    text = _ID.sub(rf' id="{key}-\1"', text)
    return re.sub(r'(url\(#|href="#)', rf"\g<1>{key}-", text)


def _opened(text: str, key: str, title: str, description: str) -> str:
    """With an opening that says what the picture is and leaves its size to who shows it."""
    box = _VIEW_BOX.search(text)
    named = f"<title id='{key}-title'>{escape(title)}</title><desc id='{key}-desc'>{escape(description)}</desc>"
    opening = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
        f'aria-labelledby="{key}-title {key}-desc" viewBox="{"" if box is None else box[1]}" '
        'stroke-linejoin="round" stroke-linecap="butt">'
    )
    return opening + named + _OPENING.sub("", text, count=1)
