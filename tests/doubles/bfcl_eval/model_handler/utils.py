"""Makes tools of functions."""

from bfcl_eval.constants.enums import ModelStyle
from bfcl_eval.model_handler.parser.java_parser import parse_java_function_call
from bfcl_eval.model_handler.parser.js_parser import parse_javascript_function_call
from bfcl_eval.utils import is_java
from tenacity import retry

NOT_USED = (retry, parse_java_function_call, parse_javascript_function_call, is_java)


def convert_to_tool(functions, mapping, style):
    assert style is ModelStyle.OPENAI_COMPLETIONS
    print("said while it works")  # noqa: T201 - must not get between the driver's JSON
    return [{"type": "function", "function": _function(each, mapping)} for each in functions]


def _function(function, mapping):
    parameters = function["parameters"]
    parameters["type"] = mapping[parameters["type"]]  # changes what it was given
    for said in parameters["properties"].values():
        said["type"] = mapping.get(said["type"], said["type"])
    return {**function, "name": function["name"].replace(".", "_")}
