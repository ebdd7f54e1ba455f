"""A test double of the LLM API: the names, defaults and manners that the harness relies on, and no model.

What it imitates: unknown arguments are refused, ``SamplingParams`` has the real defaults (32 tokens; greedy where
neither ``top_k`` nor ``top_p`` is given), results belong to the event loop in which a request was made, ``token_ids``
are cumulative, chunks come at the first token and then every ``stream_interval``, aborted requests finish as cancelled.
What the real library may do either way (the end token in ``token_ids`` or not) is a setting of :data:`script`.
"""

from tensorrt_llm.llmapi import LLM, SamplingParams

__version__ = "0.0.0+double"
__all__ = ["LLM", "SamplingParams", "__version__"]
