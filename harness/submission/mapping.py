"""Results in a folder called as the served model: ``model_mapping.json`` says whose they are, in open alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from harness.config.models import Entry, SubmissionFile
from harness.errors import ConfigError
from harness.rules import RulePack

_WHERE = "submission.yaml: model_folder"


def check_folders(submission: SubmissionFile, pack: RulePack) -> None:
    """ConfigError for a folder's name that the official checker takes for another benchmark, or that means two.

    A name that it knows itself it never looks up in the mapping.
    """
    known = {*pack.benchmarks, *pack.other_benchmarks.value, *pack.benchmark_aliases.value}
    means: dict[str, str] = {}
    for entry in submission.entries:
        name = entry.model_folder
        if name is None or name == entry.benchmark:
            continue
        if name in known:
            raise ConfigError(
                f"a folder {name} for results of {entry.benchmark}",
                where=_WHERE,
                expected="a name that is no benchmark's: the official checker maps none that it knows",
                mend="call it as the model that was served",
            )
        if means.setdefault(name, entry.benchmark) != entry.benchmark:
            raise ConfigError(
                f"a folder {name} for results of {means[name]} and of {entry.benchmark}",
                where=_WHERE,
                expected="one benchmark for one folder: the mapping is of the whole submission",
                mend="call one of them otherwise",
            )


def mapping_of(entries: Iterable[Entry]) -> Mapping[str, str]:
    """Folder -> benchmark, of the entries whose folder is not called as their benchmark."""
    return {entry.folder: entry.benchmark for entry in entries if entry.folder != entry.benchmark}


def mapping_text(mapping: Mapping[str, str]) -> str:
    """``model_mapping.json``, as the official checker reads it."""
    return json.dumps(dict(sorted(mapping.items())), indent=4) + "\n"
