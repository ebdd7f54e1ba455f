"""What can be wrong with an engine before anything is started: each a ConfigError at the line that says it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness.config.engine_fit import memory_fits, tensor_divides
from harness.config.engine_rules import images, precision, prefix_reuse, speculation
from harness.config.engine_subject import DIVIDING, Checked, Subject, gpus_in_name, keys_of
from harness.config.engines import Engine, HttpEngine, TrtllmEngine
from harness.errors import ConfigError, UnknownName
from harness.rules.engine_keys import KeyProblem


def check_engine(engine: Engine, subject: Subject) -> list[str]:
    """Raises ConfigError for the first thing that is wrong. Returns what was calculated, and what was not checked and
    why, in lines for people. An embedded engine has nothing to check here.
    """
    if not isinstance(engine, HttpEngine | TrtllmEngine):
        return []
    keys = keys_of(engine)
    return [line for check in _CHECKS for line in check(Checked(engine, keys, subject))]


def _known_options(checked: Checked) -> Iterator[str]:
    for problem in checked.keys.problems(checked.engine.options):
        raise _option_error(checked, problem)
    if isinstance(checked.engine, TrtllmEngine):
        for name in checked.keys.flags:
            if name in checked.engine.options:
                raise ConfigError(
                    f"the engine in process has no option {name}",
                    where=checked.subject.where("options", name),
                    expected="an option of the LLM API: this one is the server's, trtllm-serve's",
                    mend="remove it, or serve with kind http and server trtllm-serve",
                )
    yield from ()


def _option_error(checked: Checked, problem: KeyProblem) -> ConfigError:
    where = checked.subject.where("options", *problem.path)
    if problem.unknown:
        above = problem.key.rpartition(".")[0]
        near = [f"{above}.{name}" if above else name for name in problem.near]
        return UnknownName(f"option of {checked.keys.name}", problem.key, near, where=where)
    expected = ("one of " + ", ".join(problem.near)) if problem.near else None
    return ConfigError(f"engine option: {problem.what}", where=where, expected=expected, mend=problem.mend)


def _gpus(checked: Checked) -> Iterator[str]:
    if checked.keys.key_of("tensor") is None:
        return
    each, replicas = checked.gpus_each, checked.engine.replicas
    total = each * replicas
    told = " x ".join(f"{name} {checked.whole(name) or 1}" for name in DIVIDING if checked.keys.key_of(name))
    arithmetic = f"{_several(replicas, 'replica')} x {told} = {_several(total, 'GPU')}"
    subject = checked.subject
    for what, count in _counts(subject):
        if count != total:
            raise ConfigError(
                f"the engine takes {_several(total, 'GPU')}, {what} says {count}",
                where=subject.where("replicas"),
                expected=f"as many: {arithmetic}",
                mend="correct replicas or the parallel sizes, or run another system",
            )
    yield f"GPUs: {arithmetic}"


def _several(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _counts(subject: Subject) -> Iterator[tuple[str, int]]:
    named = gpus_in_name(subject.system)
    if named is not None:
        yield f"the name {subject.system}", named
    machine = subject.machine
    a_node, nodes = (machine.accelerators_per_node, machine.number_of_nodes) if machine is not None else (None, None)
    if a_node is not None and nodes is not None:
        yield f"system.yaml (accelerators_per_node {a_node} x number_of_nodes {nodes})", a_node * nodes


def _lengths(checked: Checked) -> Iterator[str]:
    """The longest prompt that the round tells and the output cap fit; with a cap of its own a file has its own data."""
    facts, rules = checked.facts, checked.subject.rules
    most, key = checked.whole("max_total_tokens"), checked.keys.key_of("max_total_tokens")
    if facts is not None and most is not None and most > facts.max_positions:
        raise ConfigError(
            f"{key} is {most}, the model has {facts.max_positions} positions", where=checked.where("max_total_tokens")
        )
    most = most or (facts.max_positions if facts is not None else None)
    if most is None or rules.output_caps is None:
        yield f"lengths: not checked, {key} is not set"
        return
    prompts = rules.longest_prompts.value if rules.longest_prompts is not None else {}
    for leg, ruled, own in (
        ("performance", rules.output_caps.performance.value, checked.subject.caps.performance),
        ("accuracy", rules.output_caps.accuracy.value, checked.subject.caps.accuracy),
    ):
        cap, prompt = own or ruled, 0 if own is not None else prompts.get(leg, 0)
        if prompt + cap > most:
            raise ConfigError(
                f"{key} is {most}: too few for the {leg} leg's output cap of {cap} tokens and prompts of {prompt}",
                where=checked.where("max_total_tokens"),
                expected=f"at least {prompt + cap}",
                mend=f"raise {key}; a lower output cap is a stated deviation",
            )
        yield f"lengths, {leg}: {prompt or 'prompts'} + {cap} of {most} tokens"


_CHECKS: tuple[Callable[[Checked], Iterator[str]], ...] = (
    _known_options,
    _gpus,
    _lengths,
    prefix_reuse,
    images,
    speculation,
    precision,
    tensor_divides,
    memory_fits,
)
