"""What the checks of a profile are told: a report of the endpoints client, and what was counted of its turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from harness.gate import profile_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.endpoints_facts import at, read_configuration, read_document
from harness.gate.findings import Finding
from harness.gate.index import TreeIndex
from harness.logs import AccuracyResults, Document, EndpointsLog, LogError, ScoredDataset
from harness.logs.agentic_events import TurnTotals
from harness.rules.rulings import Profile

CONFIG, SUMMARY = PurePosixPath("config.yaml"), PurePosixPath("performance/result_summary.json")
ACCURACY, SCORES = PurePosixPath("accuracy/accuracy_results.json"), PurePosixPath("scores.json")
PERFORMANCE = "performance"


@dataclass(frozen=True, slots=True)
class ProfileFacts:
    """A report, as far as it could be read: an empty document stands for a file that could not.

    ``turns`` is what ``events.jsonl`` tells, None where nobody read it; ``conversations`` how many the data set has;
    ``regions`` the SWE-bench figures (percent) of further reports.
    """

    profile: Profile
    config: Document
    summary: Document
    accuracy: Document
    scores: Document
    turns: TurnTotals | None = None
    conversations: int | None = None
    regions: tuple[float, ...] = ()
    unread: tuple[Finding, ...] = field(default=(), repr=False)

    @property
    def log(self) -> EndpointsLog:
        """What was measured and configured."""
        return EndpointsLog(self.summary, self.config)

    @property
    def scored(self) -> tuple[ScoredDataset, ...]:
        """All that was scored. LogError where it is no list of objects."""
        return AccuracyResults.of(EndpointsLog(self.accuracy, self.config)).scored

    @property
    def inline(self) -> ScoredDataset | None:
        """The measured turns, scored against the recorded ones."""
        return next((one for one in self.scored if one.dataset_type == PERFORMANCE), None)

    def datasets(self, kind: str) -> list[Document]:
        """The configured data sets of a kind; one without a type is measured."""
        return [one for one in self.config.children("datasets") if (one.value("type") or PERFORMANCE) == kind]


def read_report(
    folder: Path,
    profile: Profile,
    *,
    turns: TurnTotals | None = None,
    conversations: int | None = None,
    regions: tuple[float, ...] = (),
) -> ProfileFacts:
    """Reads a report directory; what cannot be read is a finding in ``unread``."""
    index, found = TreeIndex(folder), list[Finding]()

    def read(path: PurePosixPath, how: Callable[[], Document]) -> Document:
        if not index.has_content(path):
            found.append(R.FILES.broken(path, "no such file, or an empty one"))
            return Document(Path(path), {})
        try:
            return how()
        except LogError as error:
            found.append(R.FILES.broken(at(error, path), error.what, error.expected))
            return Document(Path(path), {})

    def as_json(path: PurePosixPath) -> Document:
        return read(path, lambda: read_document(index, path, Document.read_json))

    config = read(CONFIG, lambda: read_configuration(index, [CONFIG]))
    summary, accuracy, scores = as_json(SUMMARY), as_json(ACCURACY), as_json(SCORES)
    return ProfileFacts(profile, config, summary, accuracy, scores, turns, conversations, regions, tuple(found))
