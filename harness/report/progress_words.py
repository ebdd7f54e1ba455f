"""The figures of progress in words, for lines and for the live display."""

from __future__ import annotations

from collections.abc import Iterator

from harness.events import LegFinished, LegProgress, LegStarted, Note, Occupancy, Running, StepProgress

_NS_PER_MS = 1e6
_NS_PER_S = 1e9


def clock(seconds: float) -> str:
    """``1:02:03``, or ``2:03`` below an hour."""
    whole = max(0, round(seconds))
    minutes, hours = whole // 60 % 60, whole // 3600
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def duration(ns: float) -> str:
    """A latency with three digits or so: ``1.23 ms``, ``45.6 ms``, ``3.20 s``."""
    value, unit = (ns / _NS_PER_S, "s") if ns >= _NS_PER_S else (ns / _NS_PER_MS, "ms")
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f} {unit}"


def rate(per_s: float) -> str:
    """A rate with as many digits as can be read."""
    return f"{per_s:,.0f}" if per_s >= 100 else f"{per_s:.1f}" if per_s >= 10 else f"{per_s:.2f}"


def counts(progress: LegProgress) -> str:
    """How many samples came back of how many, and turns where there are any."""
    turns = "" if progress.turns is None else f", {progress.turns:,} turns answered"
    return f"{progress.completed:,} of {progress.issued:,} issued{turns}"


def failures(progress: LegProgress) -> str:
    """How many failed; empty where none did."""
    return f"{progress.failed:,} failed" if progress.failed else ""


def rates(progress: LegProgress) -> Iterator[str]:
    """Samples (turns where there are any) and tokens a second, those that are known."""
    if progress.samples_per_s is not None:
        yield f"{rate(progress.samples_per_s)} {'samples' if progress.turns is None else 'turns'}/s"
    if progress.tokens_per_s is not None:
        yield f"{rate(progress.tokens_per_s)} tokens/s"


def margin(running: Running) -> float | None:
    """The share of its limit that a 99th percentile leaves; below 0 where it is over, None without a limit."""
    return None if not running.limit_ns else 1 - running.p99_ns / running.limit_ns


def latency(running: Running) -> str:
    """A latency's percentiles beside its limit."""
    limit = "" if running.limit_ns is None else f" (limit {duration(running.limit_ns)})"
    return f"{running.name} p50 {duration(running.p50_ns)}, p99 {duration(running.p99_ns)}{limit}"


def occupancy(told: Occupancy) -> str:
    """How full the engine is, as far as it tells."""
    parts = [f"{told.running:,} running" if told.running is not None else ""]
    parts.append(f"{told.waiting:,} waiting" if told.waiting is not None else "")
    parts.append(f"KV cache {told.kv_cache:.0%}" if told.kv_cache is not None else "")
    return "engine: " + ", ".join(filter(None, parts)) if any(parts) else ""


def step(progress: StepProgress) -> str:
    """How far a step is; one that cannot be counted has its name alone."""
    if not progress.done and progress.total is None:
        return progress.step
    of = "" if progress.total is None else f" of {progress.total:,}"
    return f"{progress.step}: {progress.done:,}{of} {progress.unit}".rstrip()


def leg(progress: LegProgress, expected_s: float | None) -> str:
    """All that is known of a leg that runs, in one line."""
    elapsed = f"{clock(progress.elapsed_s)}" + ("" if expected_s is None else f" of about {clock(expected_s)}")
    engine = "" if progress.occupancy is None else occupancy(progress.occupancy)
    latencies = "; ".join(map(latency, progress.running))
    figures = ", ".join([counts(progress), *filter(None, [failures(progress)]), *rates(progress)])
    return f"{progress.leg}: " + "; ".join(filter(None, [f"{elapsed}, {figures}", latencies, engine]))


def lasting(event: Note | LegStarted | LegFinished) -> str:
    """What is printed once and stays."""
    if isinstance(event, Note):
        return event.text
    if isinstance(event, LegStarted):
        expected = "" if event.expected_s is None else f", about {clock(event.expected_s)}"
        return f"{event.leg}: started, in {event.folder}{expected}"
    return f"{event.leg}: {event.verdict}, {event.detail}"
