"""The parts that BFCL's single turns come in.

Source: mlcommons/endpoints dataset_manager/predefined/bfcl_v4 (categories), evaluation/bfcl_v4_scorer.py (languages).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

Language: TypeAlias = Literal["PYTHON", "JAVA", "JAVASCRIPT"]

SIMPLE: Final = ("simple_python", "simple_java", "simple_javascript")
"""Subsets that count as one in the score of their category."""

NON_LIVE: Final = "non_live"
LIVE: Final = "live"
HALLUCINATION: Final = "hallucination"

CATEGORIES: Final[Mapping[str, tuple[str, ...]]] = {
    NON_LIVE: (*SIMPLE, "multiple", "parallel", "parallel_multiple"),
    LIVE: ("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple"),
    HALLUCINATION: ("irrelevance", "live_irrelevance"),
}
"""The categories that are asked, each with its subsets. In those of ``hallucination`` no function is of use."""

CATEGORY_OF: Final[Mapping[str, str]] = {
    subset: category for category, subsets in CATEGORIES.items() for subset in subsets
}
"""The category of each subset."""

SUBSETS: Final = tuple(sorted(CATEGORY_OF))
"""All subsets, in the order in which their rows are asked."""

_LANGUAGES: Final[Mapping[str, Language]] = {"simple_java": "JAVA", "simple_javascript": "JAVASCRIPT"}


def language(subset: str) -> Language:
    """What the checker takes the values of a subset's calls for: of two of them, source code in a string."""
    return _LANGUAGES.get(subset, "PYTHON")
