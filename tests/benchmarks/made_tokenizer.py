"""A tokenizer of words, with a chat template that has calls and reasoning, as a checkpoint's folder holds it."""

from __future__ import annotations

import importlib
from pathlib import Path

TEMPLATE = (
    "{% for m in messages %}[{{ m.role }}] {{ m.content }}"
    "{% if m.reasoning_content %} think {{ m.reasoning_content }}{% endif %}"
    "{% for call in m.tool_calls or [] %} call {{ call.function.name }}"
    "{% for key, value in call.function.arguments.items() %} {{ key }} {{ value }}{% endfor %}{% endfor %} {% endfor %}"
)


def make_tokenizer(folder: Path, template: str | None = TEMPLATE) -> Path:
    """Every word that is not known is one token too."""
    tokenizers, transformers = (importlib.import_module(name) for name in ("tokenizers", "transformers"))
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")
    fast.chat_template = template
    fast.save_pretrained(str(folder))
    return folder
