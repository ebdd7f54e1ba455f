"""Has answers scored by the mlcommons client's own code; run by the Python of its environment.

Arguments: the site-packages of bfcl-eval. Standard input: a JSON list of objects with ``subset``, ``functions``,
``truth`` and ``reply``. Standard output: for each whether it is right, or how the scoring ended.
"""

import json
import sys
import types


def main() -> None:
    sys.path.append(sys.argv[1])
    # Of all models' settings the checker wants one flag; the real module imports every vendor's library.
    config = types.ModuleType("bfcl_eval.constants.model_config")
    config.MODEL_CONFIG_MAPPING = {"gpt-4o-2024-11-20-FC": types.SimpleNamespace(underscore_to_dot=True)}
    sys.modules[config.__name__] = config
    asked = json.load(sys.stdin)
    json.dump([judged(each) for each in asked], sys.stdout)


def judged(each):
    from inference_endpoint.evaluation import bfcl_v4_scorer
    from inference_endpoint.evaluation.extractor import FunctionCallExtractor

    text = said(each["reply"])
    try:
        if each["truth"] is None:
            return bool(bfcl_v4_scorer.BFCLv4Scorer._score_hallucination(None, text))
        found = FunctionCallExtractor.extract(text, default="[]")
        score = bfcl_v4_scorer.BFCLv4Scorer._score_ast(
            None, found, json.dumps(each["truth"]), func_description=each["functions"], subset=each["subset"]
        )
        return bool(score)
    except (AttributeError, TypeError, RecursionError) as error:
        return f"ended with {type(error).__name__}"


def said(reply):
    """What the scorer reads of a reply: its tool calls, or all that it says."""
    import msgspec
    from inference_endpoint.core.types import TextModelOutput, merge_tool_calls

    output = TextModelOutput(
        output=reply.get("content") or "", reasoning=reply.get("reasoning"), tool_calls=reply.get("tool_calls")
    )
    calls = merge_tool_calls(output.tool_calls)
    return msgspec.json.encode(list(calls)).decode() if calls else str(output)


if __name__ == "__main__":
    main()
