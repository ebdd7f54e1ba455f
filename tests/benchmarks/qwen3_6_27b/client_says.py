"""Run in the environment of the mlcommons client: what that client makes of files of trajectories, and of answers.

``python client_says.py QUESTIONS``, a JSON file with ``files`` (a path, whether to stream, the number of a salted
repeat or 0), ``scripts`` and ``answers``; prints JSON with a list for each. What the client refuses is null.
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from pathlib import Path
from typing import Any

from inference_endpoint.config.schema import APIType, ModelParams
from inference_endpoint.core.types import Query
from inference_endpoint.dataset_manager.agentic_inference_dataset import AgenticInferenceDataset
from inference_endpoint.evaluation.scoring import AgenticInferenceInlineScorer
from inference_endpoint.load_generator.agentic_inference_strategy import AgenticInferenceStrategy
from inference_endpoint.openai.openai_msgspec_adapter import OpenAIMsgspecAdapter


def requests(path: str, stream: bool, repeat: int) -> list[tuple[str, int, str]] | None:
    try:
        data = AgenticInferenceDataset.load_from_file(Path(path))
        sampled = {"temperature": 0, "seed": 42, "max_new_tokens": 1024, "streaming": "on" if stream else "off"}
        data.load(api_type=APIType.OPENAI, model_params=ModelParams(name="m", **sampled))
    except Exception:  # noqa: BLE001 - it refuses with whatever came up
        return None
    found = []
    for sample in data.conversation_metadata.samples:
        said = dict(data.load_sample(sample.sample_index))
        if repeat:
            said["messages"] = AgenticInferenceStrategy._messages_with_trajectory_salt(
                None, said["messages"], repeat_id=repeat, conversation_id=sample.conversation_id
            )
        body = OpenAIMsgspecAdapter.encode_query(Query(id="q", data=said))
        found.append((sample.conversation_id, sample.turn, body.decode()))
    return found


def main(questions: dict[str, Any]) -> dict[str, Any]:
    scorer = AgenticInferenceInlineScorer.__new__(AgenticInferenceInlineScorer)  # its parts need no report
    calls = ({"function": {"name": "bash", "arguments": {"command": script}}} for script in questions["scripts"])
    return {
        "files": [requests(*file) for file in questions["files"]],
        "scripts": [scorer._bash_actions({"tool_calls": [call]}) for call in calls],
        "answers": [scorer._model_intent(answer) for answer in questions["answers"]],
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    json.dump(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))), sys.stdout)
