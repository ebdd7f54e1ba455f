"""What our client needs in memory with very many requests outstanding: ``python -m sse.flight FLIGHT``.

All are submitted at once, as an Offline query is. Prints the peak memory of this process and of each client process.
"""

from __future__ import annotations

import json
import sys

from machine import peak_mb

from harness.engines.base import Answers, Failure, Requests, TokenEvents
from sse.load import Flight
from sse.ours import POLL_S, clients, prompts, workload

ROWS = 6_396


def main(flight: Flight) -> None:
    """Submits all and waits for all."""
    table = prompts(ROWS, flight.prompt)
    asked = workload(flight.tokens, TokenEvents.FIRST if flight.streamed else TokenEvents.NONE)
    rows = [number % ROWS for number in range(flight.requests)]
    answered = 0
    with clients(flight.ports, flight.processes, flight.connections) as (group, engine):
        engine.submit(Requests(asked, range(flight.requests), rows, table, rows))
        while answered < flight.requests:
            for event in engine.poll(POLL_S):
                if isinstance(event, Answers):
                    answered += len(event)
                elif isinstance(event, Failure):
                    raise RuntimeError(f"{event.kind}: {event.message}")
        peaks = [peak_mb(), *(peak_mb(process.pid) for process in group.processes)]
    print(json.dumps(peaks))


if __name__ == "__main__":
    main(Flight.parse(sys.argv[1]))
