"""The names that the driver asks for."""

from enum import Enum


class Language(Enum):
    PYTHON = "python"
    JAVA = "java"
    JAVASCRIPT = "javascript"


class ModelStyle(Enum):
    OPENAI_COMPLETIONS = "tools of chat completions"
