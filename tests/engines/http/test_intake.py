"""How much of an answer is kept before it is read."""

from __future__ import annotations

import pytest

from harness.engines.http import intake
from tests.engines.http.play import END, HEAD, Peer, Told, chunk, core_of, drive, requests, server, stream

IDS = [[i] for i in range(200)]


@pytest.mark.parametrize(("together", "expected"), [(1 << 26, 30_000), (3_000, 4_000), (0, 3_400)])
def test_the_more_connections_the_less_is_kept_of_each(
    monkeypatch: pytest.MonkeyPatch, together: int, expected: int
) -> None:
    monkeypatch.setattr(intake, "KEPT_BYTES", 30_000)
    monkeypatch.setattr(intake, "LEAST_KEPT_BYTES", 400)
    monkeypatch.setattr(intake, "ALL_KEPT_BYTES", together)
    most = 0

    def play(peer: Peer) -> None:
        peer.request()
        first, *more = map(chunk, stream(IDS, "length"))
        peer.send(HEAD + first, pause_s=0.05)
        for piece in more:
            peer.send(piece, pause_s=0.001)
        peer.send(END)

    with server(play) as running, core_of(running.url, connections=2) as core:

        def enough(told: Told) -> bool:
            nonlocal most
            most = max(most, *(len(each.raw) for each in core._pool.connections.values()), 0)
            return told.over == 2

        core.submit(requests(2))
        told = drive(core, enough)
        assert all(answer == list(range(200)) for answer in told.answers.values()) and len(told.answers) == 2
    assert 0 < most < expected  # beside what came in one read, of a machine that was busy elsewhere
