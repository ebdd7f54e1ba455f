"""Where the files of a submission are."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from harness.rules.values import Ruled, Strict


class LoadGenLayout(Strict):
    """The files of one scenario whose logs are LoadGen's, by what they are; paths from the scenario's folder."""

    applies_when: Ruled[str]
    files: dict[str, Ruled[str]]
    optional_files: Ruled[list[str]]
    runs: Ruled[list[str]]
    hash_line: Ruled[str]


class ClientProgram(Strict):
    """Where the endpoints client is had, the first of its commits that will do, and the Python that it wants."""

    repo: str
    first_commit: Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
    python: str


class EndpointsLayout(Strict):
    """The files of one scenario whose reports are the endpoints client's, and the keys the checker reads in them.

    ``scenario_of_type`` is by the configuration's ``type``; for the scenarios of ``folder_decides`` the folder's name
    decides. ``ruleset`` is the client's name of a round's rules. ``unchecked`` is what the official checker does not
    look at.
    """

    applies_when: Ruled[str]
    benchmarks: Ruled[list[str]]
    files: dict[str, Ruled[str | list[str]]]
    optional_files: Ruled[list[str]]
    keys: dict[str, Ruled[str | list[str]]]
    scenario_of_type: Ruled[dict[str, str]]
    load_patterns: Ruled[dict[str, str]]
    folder_decides: Ruled[list[str]]
    client: Ruled[ClientProgram]
    ruleset: Ruled[str]
    early_stopping_min_samples: Ruled[int]
    unconditional_audits: Ruled[list[str]]
    unchecked: Ruled[list[str]]


class Layouts(Strict):
    """The layouts of a round; None where it has no such."""

    loadgen: LoadGenLayout
    endpoints: EndpointsLayout | None = None


class Tree(Strict):
    """The files of a submitter, from the submitter's folder. ``nameplate_power`` is None where a round reads none."""

    system: Ruled[str]
    nameplate_power: Ruled[str] | None = None
    src: Ruled[str]
    model_mapping: Ruled[str]
    calibration: Ruled[list[str]]
    bandwidth: Ruled[list[str]]
    direct_folders: Ruled[list[str]]
    file_max_bytes: Ruled[int]
