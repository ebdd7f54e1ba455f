"""What servers' ``/metrics`` say, in the forms that each has, and in forms that none should have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.engines.launch.fleet import running
from harness.engines.metrics import PROMETHEUS, of_iterations, of_prometheus, of_server, of_servers
from harness.events import Occupancy, ignore
from tests.engines.launch.made import fake_plan, free_ports

VLLM = """\
# HELP vllm:num_requests_running Number of requests.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a \\"{b}\\" c"} 12.0
vllm:num_requests_running{engine="1",model_name="a"} 4.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="a"} 3.0
vllm:num_requests_waiting{engine="1",model_name="a"} 0.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 3.0
vllm:gpu_cache_usage_perc{engine="0",model_name="a"} 0.9
vllm:kv_cache_usage_perc{engine="0",model_name="a"} 0.5
vllm:kv_cache_usage_perc{engine="1",model_name="a"} 0.25
vllm:time_to_first_token_seconds_bucket{le="0.001",model_name="a"} 0.0
process_cpu_seconds_total 12.5
"""
SGLANG = """\
sglang:num_running_reqs{model_name="a",tp_rank="0",priority=""} 8
sglang:num_running_reqs{model_name="a",tp_rank="0",priority="1"} 5
sglang:num_queue_reqs{model_name="a"} 4 1700000000000
sglang:token_usage{model_name="a"} 5.2e-01
"""


def test_vllm_of_two_engines() -> None:
    assert of_prometheus(VLLM, PROMETHEUS["vllm"]) == Occupancy(16, 3, 0.375)


def test_an_older_vllm_names_its_cache_otherwise() -> None:
    older = "\n".join(line for line in VLLM.splitlines() if "kv_cache" not in line)
    assert of_prometheus(older, PROMETHEUS["vllm"]) == Occupancy(16, 3, 0.9)


def test_sglang_tells_its_priorities_once_more() -> None:
    assert of_prometheus(SGLANG, PROMETHEUS["sglang"]) == Occupancy(8, 4, 0.52)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", None),
        ("process_cpu_seconds_total 12.5\n", None),
        ("vllm:num_requests_running NaN\nvllm:num_requests_waiting -3\n", None),
        ("vllm:num_requests_running 1\nvllm:kv_cache_usage_perc +Inf", Occupancy(running=1)),
        ("vllm:num_requests_running{", None),
        ("vllm:num_requests_running one", None),
        ("<html>vllm:num_requests_running 1</html>", None),
    ],
)
def test_what_is_no_number_is_not_known(text: str, told: Occupancy | None) -> None:
    assert of_prometheus(text, PROMETHEUS["vllm"]) == told


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from('vllm:num_requests_running{}"=,\\ \n0123.eE+-#')))
def test_no_text_breaks_the_reader(text: str) -> None:
    of_prometheus("vllm:num_requests_running" + text, PROMETHEUS["vllm"])


@pytest.mark.parametrize(
    ("statistics", "told"),
    [
        ([], None),
        (None, None),
        ({"numActiveRequests": 1}, None),
        (["{"], None),
        ([3], None),
        ([{}], None),
        ([{"numActiveRequests": True, "numQueuedRequests": -1, "kvCacheStats": 5}], None),
        ([{"numActiveRequests": 9}, {"numActiveRequests": 3, "numQueuedRequests": 1}], Occupancy(3, 1)),
        (['{"numActiveRequests": 3}'], Occupancy(3)),
        ([{"kvCacheStats": {"usedNumBlocks": 1, "maxNumBlocks": 4}}], Occupancy(kv_cache=0.25)),
        ([{"kvCacheStats": {"usedNumBlocks": 1, "maxNumBlocks": 0}}], None),
        ([{"kvCacheStats": {"usedNumBlocks": 1.5, "maxNumBlocks": "4"}}], None),
    ],
)
def test_the_newest_iteration_is_told(statistics: object, told: Occupancy | None) -> None:
    assert of_iterations(statistics) == told


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["numActiveRequests", "kvCacheStats", "usedNumBlocks"]), inner)
        ),
        max_leaves=8,
    )
)
def test_no_json_breaks_the_reader(found: object) -> None:
    of_iterations(found)


def test_servers_are_asked(tmp_path: Path) -> None:
    ports = free_ports(2)
    metrics = "vllm:num_requests_running 5\nvllm:kv_cache_usage_perc 0.5\n"
    one, other = fake_plan(tmp_path / "1", ports, "--metrics", metrics), fake_plan(tmp_path / "2", ports + 1)
    with running([one, other], ready_s=60, observer=ignore):
        assert of_server("vllm", one.url) == Occupancy(running=5, kv_cache=0.5)
        assert of_servers("vllm", [one.url, one.url]) == Occupancy(running=10, kv_cache=0.5)
        assert of_server("vllm", other.url) is None  # 404
        assert of_servers("vllm", [one.url, other.url]) is None
    assert of_servers("vllm", [one.url]) is None
    assert of_server("trtllm-serve", "no URL") is None


def test_trtllm_serve_is_asked(tmp_path: Path) -> None:
    plan = fake_plan(tmp_path, free_ports(), "--metrics", json.dumps([{"numActiveRequests": 7}]))
    with running([plan], ready_s=60, observer=ignore):
        assert of_server("trtllm-serve", plan.url) == Occupancy(running=7)
