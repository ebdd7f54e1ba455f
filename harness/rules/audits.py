"""What a round's audits (TEST07, TEST09) demand."""

from __future__ import annotations

from harness.rules.values import Range, Ruled, Strict, Target


class AuditConfig(Strict):
    """The approved audit.config: the hash of its text, its keys, and what LoadGen logs when it obeyed them."""

    sha256: Ruled[str]
    settings: Ruled[dict[str, int]]
    logged: Ruled[dict[str, bool | int | str]]


class AuditRules(Strict):
    """One audit of a benchmark. ``rows`` is how many samples it issues, and the size of its data set.

    ``covers_all_rows``: whether each row is issued once, which older audit.configs do not ask of Server.
    """

    rows: Ruled[int]
    covers_all_rows: Ruled[bool]
    dataset: Ruled[str]
    reasoning_effort: Ruled[str]
    output_cap: Ruled[int]
    verdict_file: Ruled[str]
    pass_text: Ruled[str]
    score: Ruled[Target] | None = None
    mean_output_tokens: Ruled[Range] | None = None
    config: AuditConfig


class EndpointsAudit(Strict):
    """An audit of the endpoints layout: its file, the name of the test in it, whether it must be there."""

    file: str
    test: str
    required: bool
