from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from harness.errors import ConfigError
from harness.runs.keep_serving import target_of
from tests.runs.fake_servers import fake_engine
from tests.runs.made_legs import leg


def test_one_engine_for_all_legs(tmp_path: Path) -> None:
    engine = fake_engine(tmp_path)
    target = target_of([leg("Offline", engine=engine), leg("Server", "accuracy", engine=engine)])
    assert (target.name, target.engine.server) == ("BOX/gpt-oss-120b", "trtllm-serve")
    assert target.folder(Path("/results")) == Path("/results/BOX/gpt-oss-120b")


def test_several_systems(tmp_path: Path) -> None:
    first = leg(engine=fake_engine(tmp_path))
    other = dataclasses.replace(first, system="OTHER")
    with pytest.raises(ConfigError, match="these are several") as caught:
        target_of([first, other])
    assert caught.value.expected == "one of BOX/gpt-oss-120b, OTHER/gpt-oss-120b"
