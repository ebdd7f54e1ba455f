"""The torch engine as a server, started, asked and ended as a server on GPUs is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness import __version__
from harness.config.engines import HttpEngine
from harness.engines.launch.http import get
from harness.engines.launch.supervisor import below
from harness.runs.servers import STAND_IN, serving
from tests.engines.launch.made import Notes, free_ports
from tests.harness_process import ROOT, living

pytestmark = [pytest.mark.e2e, pytest.mark.torch, pytest.mark.slow]


def test_a_torch_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("starlette", reason="needs the [serve] extra")
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(ROOT / "build" / "cache"))
    engine = HttpEngine.model_validate(
        {
            "kind": "http",
            "server": "torch",
            "checkpoint": {"make": "tiny-gpt-oss"},
            "options": {"slots": 3, "threads": 1, "max_total_tokens": 256, "prefill_chunk": 64},
            "launch": {"port": free_ports(), "ready_s": 240},
        }
    )
    notes = Notes()
    with serving(engine, name="CPU-http/gpt-oss-120b", folder=tmp_path, observer=notes) as up:
        ((name, url),) = up.endpoints
        assert (name, up.model) == ("0", "tiny-gpt-oss-64x2-0")
        assert (up.info.max_total_tokens, up.info.slots, up.info.vocab_size) == (256, 3, 201_088)
        assert up.info.versions == {"harness serve": __version__}
        assert up.info.not_submittable == (STAND_IN,)
        assert json.loads(get(url, "/v1/models", timeout_s=10).body)["data"][0]["id"] == up.model
        assert up.ending() is None
        assert up.fleet is not None
        pids = below(up.fleet.pids[0])
        assert len(pids) >= 2  # the server and its engine
    assert not living(pids)
    assert "went away" not in (tmp_path / "server-0.log").read_text()
    assert any("is healthy after" in line for line in notes.lines)
