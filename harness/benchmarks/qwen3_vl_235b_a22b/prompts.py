"""The chat of one product, byte for byte as each round's client words it.

The wording is the benchmark's and not ours: v6.1's is in mlcommons/endpoints at ea333075,
``dataset_manager/predefined/shopify_product_catalogue/presets.py`` (Apache-2.0), v6.0's in mlcommons/inference at
b66003e1, ``multimodal/qwen3-vl/src/mlperf_inf_mm_q3vl/task.py`` (Apache-2.0). There a library writes the schema of the
answer at run time; here it is data. SHA-256 values in the tests prove both.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

Version: TypeAlias = Literal["v6.1", "v6.0"]
VERSIONS: Final[tuple[Version, ...]] = get_args(Version)
FIELDS: Final = ("category", "brand", "is_secondhand")
"""The fields of an answer, in order."""

_SYSTEM: Final = """Please analyze the product from the user prompt
and provide the following fields in a valid JSON object:
- category
- brand
- is_secondhand

You must choose only one, which is the most appropriate, correct, and {specific}
category out of the list of possible product categories.

The description of the product sometimes contains various types of source code
(e.g., JavaScript, CSS, HTML, etc.), where useful product information is embedded
somewhere inside the source code. For this task, you should extract the useful
product information from the source code and leverage it, and discard the
programmatic parts of the source code.

Your response should only contain a valid JSON object and nothing more, e.g.,
you should not fence the JSON object inside a ```json code block.
The JSON object should match the {following} JSON schema:
```json
{schema}
```
"""
_USER: Final = """The title of the product is the following:
```text
{title}
```

The description of the product is the following:
```text
{description}
```

The following are the possible product categories:
```json
{categories}
```
"""
_SPELLING: Final[Mapping[Version, Mapping[str, str]]] = {
    "v6.1": {"specific": "specific", "following": "following"},
    "v6.0": {"specific": "specifc", "following": "followng"},
}
_ABOUT: Final[Mapping[Version, str]] = {
    "v6.1": (
        "JSON format for expected VLM responses (matches MLCommons Q3VL schema).\n\n"
        "Reference: https://github.com/mlcommons/inference/blob/master/multimodal/qwen3-vl/src/mlperf_inf_mm_q3vl/schema.py"
    ),
    "v6.0": "Json format for the expected responses from the VLM.",
}
_ABOUT_FIELDS: Final[Mapping[Version, Mapping[str, str]]] = {
    "v6.1": {},
    "v6.0": {
        "category": (
            'The complete category of the product, e.g.,\n"Clothing & Accessories > Clothing > Shirts > Polo Shirts".\n'
            'Each categorical level is separated by " > ".'
        ),
        "brand": 'The brand of the product, e.g., "giorgio armani".',
        "is_secondhand": "True if the product is second-hand, False otherwise.",
    },
}


def schema(version: Version = "v6.1") -> dict[str, Any]:
    """The JSON schema of an answer, as the prompt shows it; keys in its order."""
    about = _ABOUT_FIELDS[version]
    properties = {
        name: {
            **({"description": about[name]} if name in about else {}),
            "title": name.replace("_", " ").title(),
            "type": "boolean" if name == "is_secondhand" else "string",
        }
        for name in FIELDS
    }
    return {
        "additionalProperties": False,
        "description": _ABOUT[version],
        "properties": properties,
        "required": list(FIELDS),
        "title": "ProductMetadata",
        "type": "object",
    }


@functools.cache
def system_text(version: Version = "v6.1") -> str:
    """What stands before every product."""
    return _SYSTEM.format(schema=json.dumps(schema(version), indent=2), **_SPELLING[version])


def user_text(title: str | None, description: str | None, categories: str, version: Version = "v6.1") -> str:
    """What is said of one product. ``categories`` is the JSON of the list as the catalogue has it.

    A title or description that is not there reads ``None``, as the clients print it. v6.0 shows the list as Python
    prints it, v6.1 its JSON as it is. ValueError where the JSON is none.
    """
    shown = categories if version == "v6.1" else str(json.loads(categories))
    return _USER.format(title=title, description=description, categories=shown)


def messages(
    title: str | None,
    description: str | None,
    categories: Sequence[str] | str,
    image_url: str,
    version: Version = "v6.1",
) -> list[dict[str, Any]]:
    """The messages of a chat: the system's text, then the product's text and picture. ``image_url`` is a data URL."""
    as_json = categories if isinstance(categories, str) else json.dumps(list(categories))
    return [
        {"role": "system", "content": system_text(version)},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": user_text(title, description, as_json, version)},
                {"type": "image_url", "image_url": {"url": image_url}},
            ],
        },
    ]


def fingerprint(version: Version) -> str:
    """SHA-256 over all that is the same in every chat, in hexadecimal: it changes when the wording does."""
    return hashlib.sha256((system_text(version) + _USER).encode()).hexdigest()
