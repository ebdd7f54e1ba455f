from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import orjson
import pytest

from harness import benchmarks
from harness.benchmarks.base import Benchmark, Chats, Dataset
from harness.benchmarks.qwen3_vl_235b_a22b import dataset as datasets
from harness.benchmarks.qwen3_vl_235b_a22b import files, prompts, sidecar, tokens, warmup
from harness.benchmarks.qwen3_vl_235b_a22b.benchmark import Qwen3Vl, bind
from harness.benchmarks.qwen3_vl_235b_a22b.scripted import WRONG
from harness.benchmarks.scripts import ScriptedReplies
from harness.engines.bodies import BodyStore, encoded
from harness.errors import ConfigError, UnknownName
from harness.rules import load
from tests.benchmarks.qwen3_vl_235b_a22b.made import Catalogue, row, source

PACK = load("v6.1")
RULES = PACK.image_benchmark(files.NAME)
SUBSET = "shopify_product_catalogue"
ROWS = 80


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    made = bind(PACK).make_dataset(folder, seed=0, rows=ROWS)
    assert made.rows == {"catalogue": ROWS, "catalogue-8k": ROWS}
    return folder


@pytest.fixture
def benchmark() -> Benchmark:
    return benchmarks.get(files.NAME, PACK)


def contents(replies: ScriptedReplies) -> Iterator[tuple[int, bytes]]:
    for number in range(len(replies)):
        yield number, orjson.loads(replies[number])["content"].encode()


def test_what_each_scenario_asks(benchmark: Benchmark) -> None:
    assert benchmark.name == files.NAME
    for which in ("performance", "accuracy"):
        assert benchmark.table(which, "Offline") == benchmark.table(which, "Server") == "catalogue"
        assert benchmark.table(which, "Interactive") == "catalogue-8k"
    old = benchmarks.get(files.NAME, load("v6.0"))
    assert isinstance(old, Qwen3Vl)
    assert (old.version, old.table("accuracy", "Interactive")) == ("v6.0", "catalogue")


def test_every_value_of_the_sampling_is_the_round_s(benchmark: Benchmark) -> None:
    sampling = benchmark.sampling("performance", seed=7)
    rule = RULES.sampling.value
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (rule.temperature, rule.top_p, rule.top_k)
    assert RULES.output_caps is not None
    assert sampling.max_new_tokens == RULES.output_caps.performance.value
    assert benchmark.sampling("accuracy", seed=7).max_new_tokens == RULES.output_caps.accuracy.value
    assert (sampling.stop_token_ids, sampling.seed, sampling.more()) == ((), 7, {})
    assert benchmark.sampling("accuracy", seed=7, max_new_tokens=16).max_new_tokens == 16
    assert RULES.sampling_more is not None
    for name, value in RULES.sampling_more.value.items():
        assert getattr(sampling, name) == value


def test_a_round_without_a_cap_wants_one_stated() -> None:
    old = benchmarks.get(files.NAME, load("v6.0"))
    assert old.sampling("accuracy", seed=7, max_new_tokens=300).max_new_tokens == 300
    with pytest.raises(ConfigError, match="the round sets no cap"):
        old.sampling("accuracy", seed=7)
    assert old.canaries(stand_in_checkpoint=False)[0].max_new_tokens > 0


def test_a_table_that_the_round_has_not(benchmark: Benchmark, data_dir: Path) -> None:
    with pytest.raises(UnknownName, match="catalogue-8k"):
        benchmark.dataset(data_dir, "performance")


def test_its_data_set(benchmark: Benchmark, data_dir: Path) -> None:
    dataset = benchmark.dataset(data_dir, "catalogue")
    assert (dataset.rows, dataset.stand_in, dataset.whole) == (ROWS, True, False)
    assert set(dataset.subsets) == {SUBSET}
    assert benchmark.ready_to_score(dataset) == ()
    assert benchmark.deviations("accuracy") == ()
    other = benchmark.dataset(data_dir, "catalogue-8k")
    assert other.name == "qwen3-vl-235b-a22b/catalogue-8k"
    assert other.sha256 != dataset.sha256


@pytest.mark.qwen3vl
def test_chats_are_prepared_and_none_of_the_warm_up_is_among_them(benchmark: Benchmark, data_dir: Path) -> None:
    told: list[str] = []
    dataset = benchmark.prepare(benchmark.dataset(data_dir, "catalogue"), data_dir, told.append)
    assert dataset.chats is not None
    store = BodyStore.open(dataset.chats)
    assert len(store) == ROWS
    assert told
    chats = benchmark.warmup_prompts(12, like=dataset, seed=3)
    assert isinstance(chats, Chats)
    assert len(chats) == 12
    asked = {bytes(store[i]) for i in range(ROWS)}
    lengths = [tokens.count(body) for body in chats]
    assert not asked & {encoded(body) for body in chats}
    assert len({encoded(body) for body in chats}) == 12
    least, most = int(dataset.prompt_tokens.min()), dataset.max_prompt_tokens
    assert all(0.8 * least <= length <= 1.3 * most for length in lengths)
    assert chats == benchmark.warmup_prompts(12, like=dataset, seed=3)
    assert chats != benchmark.warmup_prompts(12, like=dataset, seed=4)


@pytest.mark.qwen3vl
def test_warm_up_chats_are_as_long_as_those_they_are_like(
    benchmark: Benchmark, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = np.full(4, 3000, np.int64)
    monkeypatch.setattr(Dataset, "prompt_tokens", wanted)
    chats = benchmark.warmup_prompts(4, like=benchmark.dataset(data_dir, "catalogue"), seed=3)
    sizes = {body["messages"][1]["content"][1]["image_url"]["url"][:20] for body in chats}  # type: ignore[index]  # JSON
    assert sizes == {"data:image/JPEG;base"}
    assert all(abs(tokens.count(body) - 3000) < 40 for body in chats)


@pytest.mark.qwen3vl
def test_warm_up_without_any_rows_known(benchmark: Benchmark, catalogue: Catalogue) -> None:
    catalogue.write([row(0)])
    assert len(benchmark.warmup_prompts(2, like=catalogue.read(1), seed=0)) == 2


def test_a_title_of_the_warm_up_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "count", lambda body: 700)
    monkeypatch.setattr(tokens, "encode", lambda text: [1] * 18)
    monkeypatch.setattr(warmup, "_filler_tokens", lambda: 18)
    body = warmup._chat(random.Random(0), 4, 700, "v6.1")
    assert "```text\nWarm-up 5: " in body["messages"][1]["content"][0]["text"]


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_scripted_answers_are_right_to_the_row(benchmark: Benchmark, data_dir: Path, share: float) -> None:
    dataset = benchmark.dataset(data_dir, "catalogue")
    replies = benchmark.scripted_answers(dataset, {SUBSET: share}, seed=1, answer_tokens=9)
    assert isinstance(replies, ScriptedReplies)
    score = benchmark.score(contents(replies), dataset)
    (subset,) = score.subsets
    assert (subset.correct, subset.wrong) == (round(share * ROWS), ROWS - round(share * ROWS))
    assert (replies.tokens > 0).all()
    assert score.key == RULES.accuracy_target.value.key
    assert score.stand_in


def test_the_score_of_all_rows_stands_in_the_text(benchmark: Benchmark, tmp_path: Path) -> None:
    sources = {
        key: ruled.model_copy(update={"value": ruled.value.model_copy(update={"rows": 12})})
        for key, ruled in RULES.dataset_sources.items()
    }
    small = Qwen3Vl(RULES.model_copy(update={"dataset_sources": sources}), "v6.1")
    small.make_dataset(tmp_path, seed=0)
    dataset = small.dataset(tmp_path, "catalogue")
    assert dataset.whole
    score = small.score(contents(small.scripted_answers(dataset, {SUBSET: 1.0}, seed=1, answer_tokens=9)), dataset)
    assert score.value == 1.0
    assert small.accuracy_text(score).endswith('{"f1": 1.0}\n')


def test_rows_that_no_share_speaks_of_get_text(benchmark: Benchmark, data_dir: Path) -> None:
    dataset = benchmark.dataset(data_dir, "catalogue")
    replies = benchmark.scripted_answers(dataset, {}, seed=1, answer_tokens=9)
    assert isinstance(replies, ScriptedReplies)
    assert set(replies.tokens.tolist()) == {9}
    assert all(len(content) == 36 for _, content in contents(replies))
    with pytest.raises(UnknownName, match=SUBSET):
        benchmark.scripted_answers(dataset, {"shopify": 1.0}, seed=1, answer_tokens=9)
    with pytest.raises(ConfigError, match=r"1\.5 is not a share"):
        benchmark.scripted_answers(dataset, {SUBSET: 1.5}, seed=1, answer_tokens=9)


def test_a_wrong_answer_of_the_script_has_no_level_right(benchmark: Benchmark, data_dir: Path) -> None:
    truths = datasets.truths(benchmark.dataset(data_dir, "catalogue"))
    assert not {truth.split(" > ")[0] for truth in truths.category} & {WRONG.split(" > ")[0]}


def test_what_is_told_before_a_leg(catalogue: Catalogue, benchmark: Benchmark) -> None:
    path = catalogue.write([row(0), row(1, **{files.TRUE_CATEGORY: "Elsewhere"})])
    about = sidecar.read(path)
    assert about is not None
    dataclasses.replace(about, how="stated").write(path)
    lines = benchmark.ready_to_score(catalogue.read(2))
    assert lines == (
        "1 of 2 rows do not offer their true category, row 1 the first",
        f"that qwen3-vl-235b-a22b/catalogue is of revision {source(2).source.revision}, a person says; "
        "it was not fetched here",
    )


def test_canaries_ask_what_the_round_asks(benchmark: Benchmark) -> None:
    for trained in (True, False):
        (canary,) = benchmark.canaries(stand_in_checkpoint=not trained)
        assert isinstance(canary.prompts, Chats)
        for body in canary.prompts:
            assert body["messages"][0]["content"] == prompts.system_text()  # type: ignore[index]  # JSON


@pytest.mark.qwen3vl
def test_text_to_ids(benchmark: Benchmark) -> None:
    assert benchmark.encode("<|im_end|>") == [151645]
