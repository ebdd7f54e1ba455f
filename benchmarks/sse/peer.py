"""mlcommons/endpoints' HTTP client under a load: ``$ENDPOINTS_PYTHON peer.py LOAD``.

It runs in the interpreter of an environment that has that package (``inference_endpoint``, Python 3.12 or later) and
uses its public client: ``HTTPEndpointClient``, ``issue``, ``poll``, ``recv``, one worker process, its own defaults
otherwise. It speaks ``/v1/completions`` with token ids in, and reads text out: ``token_ids`` are beyond it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from pathlib import Path

from inference_endpoint.core.types import APIType, Query, QueryResult
from inference_endpoint.endpoint_client.config import HTTPClientConfig
from inference_endpoint.endpoint_client.http_client import HTTPEndpointClient

sys.path.insert(0, str(Path(__file__).parents[1]))  # it is started by its path, in another environment than ours

from sse import shape
from sse.load import Load, Took, cpu_s


def main(load: Load) -> None:
    """Runs a load."""
    logging.disable(logging.WARNING)
    config = HTTPClientConfig(
        endpoint_urls=[f"http://127.0.0.1:{load.port}/v1/completions"],
        api_type=APIType.OPENAI_COMPLETIONS,
        num_workers=1,
        max_connections=load.streams,
        log_level="ERROR",
    )
    client = HTTPEndpointClient(config)
    try:
        print(asyncio.run_coroutine_threadsafe(measured(client, load), client.loop).result().to_json(), flush=True)
    finally:
        client.shutdown()


async def measured(client: HTTPEndpointClient, load: Load) -> Took:
    """The load after a warm-up, with the CPU time of the worker and of this process."""
    (worker,) = client.worker_manager.worker_pids.values()
    await answered(client, load, load.streams, 1)
    started, theirs, own = time.monotonic(), cpu_s(worker), cpu_s(os.getpid())
    await answered(client, load, load.answers, load.tokens)
    return Took(load.answers, cpu_s(worker) - theirs, cpu_s(os.getpid()) - own, time.monotonic() - started)


async def answered(client: HTTPEndpointClient, load: Load, answers: int, tokens: int) -> None:
    """Keeps the load's streams busy until so many answers are there. Raises for one that is not what was asked for."""
    length = shape.letters(tokens, load.ids)
    data = {
        "model": shape.MODEL,
        "input_tokens": shape.prompt_ids(0, load.prompt),
        "max_tokens": tokens,
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": 0,
        "stream": True,
    }
    asked = min(answers, load.streams)
    for number in range(asked):
        client.issue(Query(id=str(number), data=data))
    left = answers
    while left:
        told = client.poll() or await client.recv()
        if not isinstance(told, QueryResult):
            continue
        if told.error is not None or len(told.get_response_output_string()) != length:
            raise RuntimeError(f"not the answer: {told}")
        left -= 1
        if asked < answers:
            client.issue(Query(id=str(asked), data=data))
            asked += 1


if __name__ == "__main__":
    main(Load.parse(sys.argv[1]))
