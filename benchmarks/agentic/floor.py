"""The least that a client can do: a blocking socket, requests that were encoded before, a look at how a response ends.

``python -m benchmarks.agentic.floor WORK``, one turn at a time. The bytes that are sent are those of our client.
"""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path
from typing import Final

from benchmarks.agentic.work import MODEL, Took, Work
from benchmarks.machine import peak_mb
from harness.engines.base import PromptTable, Requests
from harness.engines.bodies import BodyStore
from harness.engines.http.dialects import DIALECTS
from harness.engines.http.template import ChatTemplate, Head

END: Final = b"0\r\n\r\n"
ROOM: Final = 4 << 20


def main(work: Work) -> None:
    """Asks for all turns in order."""
    told = requests(work) * work.passes
    room = bytearray(ROOM)
    view = memoryview(room)
    firsts = wholes = 0
    with socket.create_connection(("127.0.0.1", work.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        started, cpu = time.monotonic(), time.process_time()
        for request in told:
            asked = time.monotonic_ns()
            connection.sendall(request)
            filled = connection.recv_into(room)
            first = time.monotonic_ns()
            while filled and not room.endswith(END, 0, filled):
                count = connection.recv_into(view[filled:])
                if not count:
                    raise ConnectionError("the server closed the connection")
                filled += count
            firsts += first - asked
            wholes += time.monotonic_ns() - asked
        wall, cpu = time.monotonic() - started, time.process_time() - cpu
    n = len(told)
    print(Took(n, 0, wall, cpu, firsts / n / 1e6, wholes / n / 1e6, peak_mb()).to_json())


def requests(work: Work) -> list[bytes]:
    """The requests of one pass, each whole."""
    store = BodyStore.open(Path(work.store))
    head = Head(f"127.0.0.1:{work.port}", "", None)
    template = ChatTemplate(head, DIALECTS["trtllm-serve"], MODEL, work.workload(), store)
    rows = range(len(store))
    asked = Requests(work.workload(), rows, rows, PromptTable.empty(len(store)), rows)
    return [b"".join(template.request(asked, place, 42)) for place in rows]


if __name__ == "__main__":
    main(Work.parse(sys.argv[1]))
