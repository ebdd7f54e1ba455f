"""Servers spoken to over HTTP: an engine core over non-blocking sockets, without threads or an event loop.

:mod:`~harness.engines.http.core` is the engine: it takes what the sockets have, and tells what came of it. Below it,
:mod:`~harness.engines.http.pool` opens connections, gives them requests and finds out which server is dead, with one
:mod:`~harness.engines.http.endpoint` (what waits) a server and one :mod:`~harness.engines.http.connection` a socket.
:mod:`~harness.engines.http.dialects` says as data what each kind of server is asked and how it answers;
:mod:`~harness.engines.http.course` and :mod:`~harness.engines.http.template` make the requests of a workload from it.
What comes back goes through :mod:`~harness.engines.http.response` (the framing of HTTP) and
:mod:`~harness.engines.http.sse` (the frames of a stream) to :mod:`~harness.engines.http.ids` (answers of token ids) or
:mod:`~harness.engines.http.chat` (replies to chats).
"""
