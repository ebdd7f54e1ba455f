"""What the in-process TensorRT-LLM engine is made with, and how a request's sampling is said to it in full.

The LLM API has defaults that would change what is measured: 32 new tokens, greedy where neither ``top_k`` nor ``top_p``
is given, one seed for all requests, detokenized text. So every value is always given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final

from harness.engines.base import Sampling
from harness.errors import ConfigError, UnknownName

OURS: Final = ("model", "skip_tokenizer_init")
"""Arguments of ``tensorrt_llm.LLM`` that the engine gives itself."""
_NEEDED: Final = {
    "max_seq_len": "tokens of a prompt and its answer together",
    "max_batch_size": "requests that are worked on at once",
}
_GOLDEN = 0x9E3779B97F4A7C15
_64_BITS = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class TrtllmSettings:
    """How a :class:`~harness.engines.trtllm.TrtllmCore` is made.

    ``options`` are arguments of ``tensorrt_llm.LLM`` (LlmArgs), nested as in its YAML, ``max_seq_len`` and
    ``max_batch_size`` among them. ``name`` is what the checkpoint is called and ``weight_data_type`` what its weights
    are; "" for its folder's name, and for what its files say.
    """

    checkpoint: Path
    options: Mapping[str, object] = field(default_factory=dict)
    name: str = ""
    weight_data_type: str = ""

    def __post_init__(self) -> None:
        for key in OURS:
            if key in self.options:
                raise ConfigError(
                    f"options say {key}", where="engine.options", mend=f"remove {key}: the engine says it"
                )
        for key, meaning in _NEEDED.items():
            number = self.options.get(key)
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise ConfigError(
                    f"TensorRT-LLM's {key} is {number!r}",
                    where="engine.options",
                    expected=f"{key}: {meaning}; its default is not told until the weights are loaded",
                )

    @property
    def max_seq_len(self) -> int:
        """Tokens that a prompt and its answer may have together."""
        return int(str(self.options["max_seq_len"]))

    @property
    def max_batch_size(self) -> int:
        """Requests that are worked on at once."""
        return int(str(self.options["max_batch_size"]))

    @classmethod
    def parse(cls, settings: Mapping[str, object]) -> TrtllmSettings:
        """From the plain values of an engine's spec. Raises ConfigError."""
        known = [each.name for each in fields(cls)]
        for key in settings:
            if key not in known:
                raise UnknownName("setting of the trtllm engine", key, known)
        checkpoint, options = settings.get("checkpoint"), settings.get("options", {})
        if not isinstance(checkpoint, str) or not checkpoint:
            raise ConfigError("the trtllm engine needs a checkpoint", expected="checkpoint: the path of a folder")
        if not isinstance(options, Mapping) or not all(isinstance(key, str) for key in options):
            raise ConfigError(f"the trtllm engine's options are {options!r}", expected="a mapping of LlmArgs' names")
        words = {key: settings.get(key, "") for key in ("name", "weight_data_type")}
        for key, word in words.items():
            if not isinstance(word, str):
                raise ConfigError(f"the trtllm engine's {key} is {word!r}", expected="a string")
        return cls(Path(checkpoint), dict(options), str(words["name"]), str(words["weight_data_type"]))


def request_seed(seed: int, number: int) -> int:
    """The seed of one request of a leg, 0 to 2**63 - 1: two requests with one seed would get the same random numbers.

    It is the mixing function of SplitMix64 (Steele, Lea and Flood, 2014), so that neighbours have nothing in common.
    """
    mixed = (seed * 0xD1342543DE82EF95 + (number + 1) * _GOLDEN) & _64_BITS
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & _64_BITS
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & _64_BITS
    return (mixed ^ (mixed >> 31)) >> 1


def sampling_values(sampling: Sampling) -> dict[str, object]:
    """The arguments of ``tensorrt_llm.SamplingParams`` that all requests of a workload have in common: all but seed.

    Greedy is said as ``top_k`` 1, which every version understands; some take a temperature of 0 for a mistake.
    The first stop token is the end token, since without a tokenizer nobody else says which that is.
    """
    greedy = sampling.temperature == 0
    stops = list(sampling.stop_token_ids)
    return {
        "temperature": 1.0 if greedy else float(sampling.temperature),
        "top_p": 1.0 if greedy else float(sampling.top_p),
        "top_k": 1 if greedy else sampling.top_k,
        "max_tokens": sampling.max_new_tokens,
        "end_id": stops[0] if stops else 0,
        "pad_id": stops[0] if stops else 0,
        "ignore_eos": not stops,
        "stop_token_ids": stops[1:] or None,
        "include_stop_str_in_output": False,
        "n": 1,
        "detokenize": False,
    }
