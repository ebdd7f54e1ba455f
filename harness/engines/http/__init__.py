"""Servers spoken to over HTTP: an engine core over non-blocking sockets, without threads or an event loop.

:mod:`~harness.engines.http.core` is the engine: it hands requests to the endpoints and tells what came back.
:mod:`~harness.engines.http.endpoint` holds one server's queue and connections, :mod:`~harness.engines.http.connection`
one socket, :mod:`~harness.engines.http.response` the framing of HTTP. :mod:`~harness.engines.http.dialects` says as
data what each kind of server is asked and how it answers, :mod:`~harness.engines.http.template` makes the bytes of a
request. What comes back is read by :mod:`~harness.engines.http.sse` (frames of a stream),
:mod:`~harness.engines.http.ids` (answers of token ids) and :mod:`~harness.engines.http.chat` (replies to chats).
"""
