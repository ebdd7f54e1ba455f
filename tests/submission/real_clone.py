"""The clone of mlcommons/inference that the environment names when the tests start, if it names one."""

from __future__ import annotations

import pytest

from harness.env import MLPERF_INFERENCE_DIR

CLONE = MLPERF_INFERENCE_DIR.path()
needs_clone = pytest.mark.skipif(CLONE is None, reason=f"{MLPERF_INFERENCE_DIR.name} names no clone")
