from __future__ import annotations

from pathlib import Path

import pytest

from tests.logs.loadgen_runs import LEGS


@pytest.fixture(scope="session")
def server_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of a real Server run of LoadGen's, of a second or two. Read-only by agreement: copy before changing."""
    return LEGS["Server", "performance"].run(tmp_path_factory.mktemp("loadgen") / "server")
