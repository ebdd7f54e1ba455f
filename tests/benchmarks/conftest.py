from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.env import HARNESS_CACHE_DIR


@pytest.fixture(scope="package", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The vocabulary is made anew: a cache left by somebody else proves nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(HARNESS_CACHE_DIR.name, str(tmp_path_factory.mktemp("cache")))
        yield
