"""What rules allow an engine: nothing kept between queries, pictures as sent, approved drafters, weights as said."""

from __future__ import annotations

from collections.abc import Iterator

from harness.config.engine_subject import Checked
from harness.config.engines import ServedCheckpoint
from harness.errors import ConfigError
from harness.rules import ImageRules
from harness.rules.engine_keys import MeaningName
from harness.rules.values import Ruled, Speculation


def prefix_reuse(checked: Checked) -> Iterator[str]:
    """Block reuse and prefix caching are off where the entry is closed; where unset, the server may have them on."""
    ruled = checked.subject.rules.prefix_caching
    key = checked.keys.key_of("prefix_reuse")
    if key is None or ruled is None or ruled.value or not checked.value("prefix_reuse"):
        return
    if not checked.subject.closed:
        yield f"prefix reuse is on ({key}): closed would refuse it"
        return
    said = checked.keys.says(checked.engine.options, "prefix_reuse")
    how = "is switched on" if said else f"is on where {key} is not set"
    off = "true" if checked.keys.meanings["prefix_reuse"].inverted else "false"
    raise ConfigError(
        f"prefix reuse {how}, and the entry is {checked.subject.division}",
        where=checked.where("prefix_reuse"),
        expected=f"no query served from another's KV cache ({ruled.source})",
        mend=f"set {key}: {off}",
    )


def images(checked: Checked) -> Iterator[str]:
    """A picture is seen as it was sent: no budget of pixels, and nothing of it kept for the next query."""
    rules = checked.subject.rules
    ruled = rules.image_changes if isinstance(rules, ImageRules) else None
    if ruled is None or ruled.value:
        return
    budget, kept = checked.value("image_budget"), checked.value("image_cache")
    broken: tuple[tuple[bool, MeaningName, str, str], ...] = (
        (bool(budget), "image_budget", "the pictures would be changed before the model sees them", "remove {key}"),
        (bool(kept), "image_cache", "what was made of a picture would be kept for the next query", "set {key}: 0"),
    )
    for is_broken, name, what, mend in broken:
        key = checked.keys.key_of(name)
        if not is_broken:
            continue
        if not checked.subject.closed:
            yield f"{what} ({key}): closed would refuse it"
            continue
        raise ConfigError(
            f"{what}, and the entry is {checked.subject.division}: {key} is {checked.value(name)!r}",
            where=checked.where(name),
            expected=f"the checkpoint's own preprocessing of each picture ({ruled.source})",
            mend=mend.format(key=key),
        )


def speculation(checked: Checked) -> Iterator[str]:
    """Speculative decoding only in the scenarios that may, with the approved drafter, sampled as the rules have it."""
    ruled = checked.subject.rules.speculative_decoding
    if ruled is None or checked.value("speculation") in (None, False):
        return
    if not checked.subject.closed:
        yield "speculative decoding is on: closed allows it in few scenarios"
        return
    scenario = checked.subject.scenario
    allowed = ruled.value.get(scenario)
    if allowed is None:
        raise ConfigError(
            f"speculative decoding in {scenario}, and the entry is {checked.subject.division}",
            where=checked.where("speculation"),
            expected=f"{', '.join(ruled.value) or 'no scenario'} alone may ({ruled.source})",
            mend=f"remove {checked.keys.key_of('speculation')}; a scenario may have options of its own",
        )
    _drafts_as_approved(checked, allowed, ruled)
    _samples_drafts(checked)
    yield f"speculative decoding with {allowed.drafter}: approved for {scenario}"


def _drafts_as_approved(checked: Checked, allowed: Speculation, ruled: Ruled[dict[str, Speculation]]) -> None:
    wanted: tuple[tuple[MeaningName, object, object], ...] = (
        ("drafter", _last(checked.value("drafter")), _last(allowed.drafter)),
        ("draft_tokens", checked.value("draft_tokens"), allowed.draft_tokens),
        ("draft_topk", checked.value("draft_topk"), allowed.topk),
    )
    for name, found, expected in wanted:
        key = checked.keys.key_of(name)
        one_branch = name == "draft_topk" and found is None  # the servers' own default
        if key is not None and expected is not None and found != expected and not one_branch:
            mend = "a drafter's folder is called as it is published" if name == "drafter" else f"set {key}: {expected}"
            raise ConfigError(
                f"speculative decoding with {key} {found!r}, the round approves {expected!r}",
                where=checked.where(name),
                expected=f"{allowed.drafter}, {allowed.draft_tokens} tokens a step ({ruled.source})",
                mend=mend,
            )


def _samples_drafts(checked: Checked) -> None:
    key, temperature = checked.keys.key_of("sampled_drafts"), checked.subject.rules.sampling.value.temperature
    if key is not None and temperature > 0 and not checked.value("sampled_drafts"):
        raise ConfigError(
            f"an engine that drafts samples greedily where {key} is not true",
            where=checked.where("speculation"),
            expected=f"temperature {temperature:g}",
            mend=f"set {key}: true",
        )


def _last(path: object) -> str | None:
    return None if path is None else str(path).rstrip("/").rpartition("/")[2]


def precision(checked: Checked) -> Iterator[str]:
    """The weights are what measurements.yaml and the checkpoint's publisher say."""
    checkpoint = checked.engine.checkpoint
    if not isinstance(checkpoint, ServedCheckpoint):
        return
    where = checked.subject.where("checkpoint", "weight_data_type")
    said = checkpoint.weight_data_type
    declared = checked.subject.declared_weights
    published = checked.facts.checkpoints[checkpoint.name] if checked.facts is not None else None
    for what, other in (
        ("measurements.yaml declares", declared),
        (f"{checkpoint.name} was published in", published and published.weight_data_type),
    ):
        if other is not None and other != said:
            raise ConfigError(
                f"weight_data_type is {said}, {what} {other}", where=where, mend="correct the one that is wrong"
            )
    yield f"precision: weights {said}, KV cache {checked.value('kv_dtype')}"
