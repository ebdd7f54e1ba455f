"""The rules of other programmes' profiles, which a user asks for by name; no row of a round is held to them."""

from __future__ import annotations

from harness.gate.findings import Severity, rule

_REJECT, _REVIEW, _NOTE = Severity.REJECT, Severity.REVIEW, Severity.NOTE
_K26 = "endpoints_k26/examples/10_Agentic_Inference"
_RERUN = "correct the client's configuration and run again; never edit what it wrote"

STALE = rule(
    "EP-PROFILE-STALE",
    _REVIEW,
    "a profile that its programme still has",
    mend="see what the programme asks for now; by these rules nothing can be filed there any more",
    source="endpoints/examples/10_Agentic_Inference",
)
FILES = rule(
    "EP-PROFILE-FILES",
    _REJECT,
    "a report directory as the endpoints client writes it",
    mend="give the folder that holds config.yaml, performance/, accuracy/ and scores.json, unedited",
    source="harness: no program of the programme's looks at a report of this model",
)
MODEL = rule(
    "EP-PROFILE-MODEL",
    _REVIEW,
    "the profile's model by its name",
    mend="say in the entry which model was served; a path tells nothing",
    source=_K26,
)
PARAMS = rule(
    "EP-PROFILE-PARAMS", _REJECT, "the profile's sampling and thinking flags, and no others", mend=_RERUN, source=_K26
)
SETTINGS = rule("EP-PROFILE-SETTINGS", _REJECT, "the profile's settings of the replay", mend=_RERUN, source=_K26)
TRAJECTORIES = rule(
    "EP-PROFILE-TRAJECTORIES",
    _REJECT,
    "every trajectory of the data set, once or more often, none left out",
    mend="set num_trajectories_to_issue to a multiple of the data set, and run over all of it",
    source=_K26,
)
COMPLETE = rule(
    "EP-PROFILE-COMPLETE",
    _REJECT,
    "a run that came to its end with every turn answered",
    mend="mend what failed and run again: after a failure the rest of a trajectory counts as answered in no time",
    source="endpoints/compliance/checker",
)
INLINE = rule(
    "EP-PROFILE-INLINE",
    _REJECT,
    "the inline score of the profile",
    mend="find what the model lost; serve it as it was published",
    source=_K26,
)
LENGTH = rule(
    "EP-PROFILE-OSL",
    _REJECT,
    "a mean output length of turns within the profile's window",
    mend="find out why answers are shorter or longer: thinking flags, a cap, a template that strips reasoning",
    source=_K26,
)
SWE_BENCH = rule(
    "EP-PROFILE-SWE",
    _REJECT,
    "SWE-bench of the profile's instances, the mean of one figure from each region",
    mend="run with --mode both, and give the reports of all regions with --region",
    source=_K26,
)
SPECULATION = rule(
    "EP-PROFILE-SPECULATION",
    _NOTE,
    "to know which drafter there may be",
    mend="nothing, where the engine did not draft or drafted with that head; a report does not tell",
    source=_K26,
)
