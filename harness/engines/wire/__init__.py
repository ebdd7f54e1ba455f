"""What a client and an engine's process tell each other, as frames.

Requests, tokens and answers are columns of little-endian int64, one after the other, and at last the token ids as
int32 or the replies' bytes; the rest is JSON. Both ends are on one machine, so columns are written as they lie in
memory. A lone request, token or answer, which is how a server is asked, takes a shorter way through one ``struct`` to
the same bytes.

========== ================== ===============================================================================
kind       n                  payload
========== ================== ===============================================================================
INFO       0                  JSON of EngineInfo; the first thing an engine says
WORKLOAD   its number         JSON of Workload; requests refer to it by that number
REQUESTS   n requests         workload number; n numbers, n rows; but for chats, n prompt lengths and the prompts
TOKENS     n tokens           at_ns; n numbers, n positions; n ids
ANSWERS    n answers          n numbers, n ends, n first_ns, n done_ns, n finish; the answers
REPLIES    n replies          what is told; n numbers, n ends, n first_ns, n done_ns, n finish, n tokens, and as told
                              n prompt_tokens, n cached_tokens; the replies
FAILURES   n failures         JSON, n times [number, kind, message]
DROP       n requests         n numbers; the engine works no longer on them, and says nothing to it
CANCEL     of the client      none; the engine forgets all requests and says CANCEL with the same n
PING       of the client      none; the engine says PING with the same n
COUNTERS   of the client      none; the engine says COUNTERS with the same n and JSON of what it counted
FATAL      0                  JSON of what ended the engine
========== ================== ===============================================================================
"""

from harness.engines.wire.layout import (
    CHATS_IN_CHUNK,
    CHUNK_BYTES,
)
from harness.engines.wire.reading import (
    info_of_json,
    read_counters,
    read_drop,
    read_event,
    read_fatal,
    read_info,
    read_requests,
    read_workload,
)
from harness.engines.wire.writing import (
    drop_frame,
    event_frame,
    event_frames,
    info_frame,
    requests_frame,
    requests_frames,
    workload_frame,
)

__all__ = [
    "CHATS_IN_CHUNK",
    "CHUNK_BYTES",
    "drop_frame",
    "event_frame",
    "event_frames",
    "info_frame",
    "info_of_json",
    "read_counters",
    "read_drop",
    "read_event",
    "read_fatal",
    "read_info",
    "read_requests",
    "read_workload",
    "requests_frame",
    "requests_frames",
    "workload_frame",
]
