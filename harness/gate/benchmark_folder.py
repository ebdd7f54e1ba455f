"""The folders of a system's results: which benchmark each is of, its scenarios, and whether they make an entry."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from harness.gate import tree_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.findings import Finding, Rule, Severity
from harness.gate.index import TreeIndex, Unreadable
from harness.gate.row import RowReport, check_row, check_structure
from harness.gate.row_layout import RowPlace, layout_of
from harness.gate.rulings import check_scenario_rulings
from harness.gate.system_description import categories_of
from harness.rules import BenchmarkRules, RulePack
from harness.rules.values import ScenarioSet


def model_mapping(index: TreeIndex, folder: PurePosixPath, pack: RulePack, found: list[Finding]) -> Mapping[str, str]:
    """A submitter's own names of benchmarks -> official ones; in open alone."""
    path = folder / pack.tree.model_mapping.value
    if folder.parts[0] != "open" or path not in index.nodes:
        return {}
    try:
        mapping = index.read_object(path)
    except Unreadable as error:
        found.append(R.MAPPING.broken(path, str(error)))
        return {}
    wrong = [name for name, official in mapping.items() if not isinstance(official, str)]
    found += [  # a folder of that name is a benchmark that nobody knows, which rejects it
        R.MAPPING.broken(path, f"{name!r} is mapped to {mapping[name]!r}", severity=Severity.REVIEW) for name in wrong
    ]
    return {name: official for name, official in mapping.items() if isinstance(official, str)}


def check_benchmark(
    index: TreeIndex,
    folder: PurePosixPath,
    system: Mapping[str, Any],
    mapping: Mapping[str, str],
    pack: RulePack,
) -> tuple[list[RowReport], list[Finding]]:
    """The rows in a folder ``<division>/<submitter>/results/<system>/<name>``, and what is wrong with it as a whole."""
    name = folder.name
    benchmark = _official_name(name, mapping, pack)
    if benchmark in pack.other_benchmarks.value:
        return [], list(_unruled(index, folder, system, benchmark, pack))
    if benchmark not in pack.benchmarks:
        # In open the official checker passes over a folder with no scenario in it.
        passed_over = folder.parts[0] == "open" and not index.folders(folder)
        severity = Severity.REVIEW if passed_over else None
        return [], [_unknown(R.BENCHMARK, folder, name, list(pack.benchmarks), severity)]
    division, rules = folder.parts[0], pack.benchmark(benchmark)
    found = list(_category(folder, system, benchmark, pack))
    rows: list[RowReport] = []
    for scenario in index.folders(folder):
        taken, spelling = _scenario(index, folder / scenario, rules, pack)
        found += spelling
        if taken is not None:
            _, submitter, _, system_name, _ = folder.parts
            place = RowPlace(folder / scenario, division, submitter, system_name, benchmark, taken)
            rows.append(check_row(index, place, pack))
    found += check_scenario_rulings(folder, division, benchmark, [row.place.scenario for row in rows], pack)
    if pack.holds("scenario_set", division):
        found += _scenario_set(folder, index.folders(folder), _set_of(system, rules))
    return rows, found


def _official_name(name: str, mapping: Mapping[str, str], pack: RulePack) -> str:
    """The benchmark that a folder's name means. An official name is never mapped, nor an alias, as the official checker
    has it.
    """
    if name in pack.benchmarks or name in pack.other_benchmarks.value:
        return name
    return pack.benchmark_aliases.value.get(name) or mapping.get(name) or name


def _unruled(
    index: TreeIndex, folder: PurePosixPath, system: Mapping[str, Any], benchmark: str, pack: RulePack
) -> Iterator[Finding]:
    """A benchmark of the round that the gate does not know: its files alone can be checked, and its system's type."""
    system_types = pack.other_benchmarks.value[benchmark]
    if _kind(system) not in system_types:
        yield _wrong_category(folder, system, benchmark, system_types, pack.other_benchmarks.source, pack)
    yield R.UNRULED.broken(folder, f"results of {benchmark}", source=pack.other_benchmarks.source)
    for scenario in index.folders(folder):
        yield from check_structure(index, folder / scenario, pack, None)[1]


def _category(folder: PurePosixPath, system: Mapping[str, Any], benchmark: str, pack: RulePack) -> Iterator[Finding]:
    wanted = pack.benchmark(benchmark).categories
    if categories_of(system).isdisjoint(wanted.value):
        yield _wrong_category(folder, system, benchmark, wanted.value, wanted.source, pack)


def _wrong_category(
    folder: PurePosixPath, system: Mapping[str, Any], benchmark: str, wanted: list[str], source: str, pack: RulePack
) -> Finding:
    path = folder.parents[2] / pack.tree.system.value.format(system=folder.parts[3])
    severity = Severity.REVIEW if folder.parts[0] == "open" else None
    found = f"system_type {system.get('system_type')!r} with results of {benchmark}"
    return R.SYSTEM_CATEGORY.broken(path, found, " or ".join(wanted), severity=severity, source=source)


def _scenario(
    index: TreeIndex, folder: PurePosixPath, rules: BenchmarkRules, pack: RulePack
) -> tuple[str | None, list[Finding]]:
    """The scenario that a folder is checked as, None for none; and what is wrong with its name."""
    name = folder.name
    if name in rules.scenarios:
        return name, []
    known = scenarios_of(pack)
    right = next((scenario for scenario in known if scenario.lower() == name), None)
    right = right or _scenario_of_client(index, folder, rules, pack)
    taken = name if name in known else right
    if taken is None or (right is not None and rules.scenario_spelling_exact is not None):
        return None, [_unknown(R.SCENARIO, folder, name, list(rules.scenarios))]
    found = []
    if right is not None:
        said = f"{name}, which the official checker takes for {right}"
        found.append(R.SCENARIO.broken(folder, said, right, severity=Severity.REVIEW))
    if taken not in rules.scenarios:
        found.append(_unruled_scenario(folder, taken, rules))
    return taken, found


def _scenario_of_client(index: TreeIndex, folder: PurePosixPath, rules: BenchmarkRules, pack: RulePack) -> str | None:
    """The scenario that the endpoints client's word for it means, in any case, as the name of a folder of its reports;
    None where it has no word of its own.
    """
    client, word = pack.layouts.endpoints, folder.name.lower()
    scenario = None if client is None else client.scenario_of_type.value.get(word)
    if scenario is None or scenario.lower() == word:
        return None
    return scenario if layout_of(index, folder, pack, rules.layouts)[0] == "endpoints" else None


def scenarios_of(pack: RulePack) -> list[str]:
    """All scenarios that the round knows, whichever benchmark has them."""
    ruled = [name for rules in pack.benchmarks.values() for name in rules.scenarios]
    return list(dict.fromkeys([*ruled, *pack.early_stopping_scenarios.value]))


def _unruled_scenario(folder: PurePosixPath, scenario: str, rules: BenchmarkRules) -> Finding:
    """Open may run any scenario of LoadGen's. The official checker breaks on some: where it looks for a number of
    samples that its tables have not.
    """
    expected = "one of " + ", ".join(rules.scenarios)
    if folder.parts[0] == "open" and rules.scenario_spelling_exact is None and scenario != "Offline":
        found = f"{scenario}, which the round has no rules for: only what holds for any run is checked"
        return R.SCENARIO.broken(folder, found, expected, severity=Severity.REVIEW)
    return R.SCENARIO.broken(folder, f"{scenario}, which the benchmark has not", expected)


def _kind(system: Mapping[str, Any]) -> str:
    """A system's categories in the order that the packs have them."""
    return ",".join(sorted(categories_of(system)))


def _set_of(system: Mapping[str, Any], rules: BenchmarkRules) -> tuple[ScenarioSet, str]:
    """The scenarios that a system of its type must have, and who says so; of an unknown type, those of any."""
    ruled = rules.scenario_sets.get(_kind(system))
    if ruled is not None:
        return ruled.value, ruled.source
    required, one_of = rules.required_scenarios, rules.one_of_scenarios
    return ScenarioSet(required=required.value, one_of=one_of.value), required.source


def _scenario_set(folder: PurePosixPath, names: Iterable[str], wanted: tuple[ScenarioSet, str]) -> Iterator[Finding]:
    """One scenario too few or too many refuses all of the benchmark's; the official checker compares in lower case."""
    (scenarios, source), there = wanted, {name.lower() for name in names}
    for scenario in scenarios.required:
        if scenario.lower() not in there:
            yield R.SCENARIO_SET.broken(folder, f"no {scenario}", source=source)
    if scenarios.one_of and there.isdisjoint(scenario.lower() for scenario in scenarios.one_of):
        choice = " or ".join(scenarios.one_of) + ", or both"
        yield R.SCENARIO_SET.broken(folder, "neither " + " nor ".join(scenarios.one_of), choice, source=source)
    allowed = [*scenarios.required, *scenarios.one_of]
    for name in sorted(there - {scenario.lower() for scenario in allowed}):
        found = f"a folder {name}, which refuses the other scenarios too"
        yield R.SCENARIO_SET.broken(folder, found, "none but " + ", ".join(allowed), source=source)


def _unknown(rule: Rule, path: PurePosixPath, name: str, known: list[str], severity: Severity | None = None) -> Finding:
    near = difflib.get_close_matches(name.casefold(), [k.casefold() for k in known], n=1, cutoff=0.5)
    mend = None
    if near:
        right = next(k for k in known if k.casefold() == near[0])
        mend = f"did you mean {right!r}? " + rule.mend
    return rule.broken(path, f"a folder {name}", "one of " + ", ".join(known), mend=mend, severity=severity)
