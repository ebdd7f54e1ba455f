"""A server over any engine of ours that speaks trtllm-serve's protocol, and misbehaves on demand.

It is what the HTTP client is held against where there is no GPU, and how real tokens of the torch engine come over
HTTP. What a client can observe follows TensorRT-LLM's own sources, read in NVIDIA/TensorRT-LLM:

* the 1.2 line, which decides: names, types and defaults of request fields (unknown ones are a 400), the body of an
  error, the order of a response's fields, chunks that each have an id of their own, the trailing blank behind a chat's
  first event, the token counts at which ``stream_interval`` lets a chunk go (the first, every n-th, the last). The
  tree of the tag was not to be had; the texts were ``openai_protocol.py``, ``openai_server.py`` and
  ``postprocess_handlers.py`` of that line as a public index stores them;
* commit 02238b67 of ``harmony_adapter.py``, which is later than 1.2: what becomes of the texts of gpt-oss's chats;
* commits 0076e939 (``openai_protocol.py``) and 00057725 (``openai_server.py``) of the line after it, for what 1.2
  leaves to the reader;
* a text of ``openai_server.py`` that is stored without its commit, later than 1.2 too: an answer that breaks is told in
  the stream as an event ``{"error": ...}``, with two ``[DONE]`` behind it.

Where it is asked for vLLM's manners (:mod:`~harness.serve.manners`), it follows vllm 0.32.0 as installed.

``docs/serve.md`` has the differences, and there are such: what an engine of ours cannot do is refused, never ignored.
"""
