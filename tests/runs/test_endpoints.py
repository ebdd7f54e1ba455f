from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness import benchmarks
from harness.benchmarks.base import Dataset
from harness.clients.endpoints.config import CONFIG, REPORT, config_text
from harness.clients.endpoints.program import find_program
from harness.engines.base import Checkpoint, EngineInfo, PromptTable
from harness.errors import ConfigError, MissingError, RunBroke
from harness.events import ignore
from harness.ledger import ResultsStore, RunRecord, State
from harness.ledger.record import Rate, Warmup
from harness.runs.endpoints_import import import_run, one_row
from harness.runs.endpoints_leg import ClientGroup, run_endpoints_leg
from harness.runs.endpoints_session import ClientSession
from harness.runs.endpoints_settings import asked_of, choices, samples
from harness.runs.plan import PlannedLeg
from harness.runs.servers import Serving
from tests.clients.endpoints.fake_client import make_fake_client
from tests.clients.endpoints.reports import DATASET, MS, Report, old_report
from tests.clients.endpoints.test_client import LAYOUT
from tests.gate import made_endpoints as made
from tests.runs.endpoints_made import BENCHMARK, PACK, ROWS, answers, dataset, leg, make_data, report

pytest.importorskip("PIL", reason="needs the [qwen3-vl] extra")

WRONG_SCORE = 0.123


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("qwen"))


@pytest.fixture
def store(tmp_path: Path) -> ResultsStore:
    return ResultsStore(tmp_path / "results")


@pytest.fixture
def take(store: ResultsStore, data: Path, tmp_path: Path) -> Callable[..., RunRecord]:
    """Imports a report as a run of a leg."""

    def take(written: Path, planned: PlannedLeg | None = None) -> RunRecord:
        return import_run(
            planned or leg(),
            written,
            store=store,
            data_dir=data,
            command=["python", "-m", "harness", "run_harness"],
            division="open",
            observer=ignore,
        )

    return take


def rejects(record: RunRecord) -> set[str]:
    assert record.verdict is not None
    return {finding.rule for finding in record.verdict.findings if finding.severity == "reject"}


def reviews(record: RunRecord) -> set[str]:
    assert record.verdict is not None
    return {finding.rule for finding in record.verdict.findings if finding.severity == "review"}


# -- imports -----------------------------------------------------------------------------------------------------------


def test_a_report_becomes_a_run(
    take: Callable[..., RunRecord], data: Path, tmp_path: Path, store: ResultsStore
) -> None:
    source = report(answers(data), 1.0).write(tmp_path / "theirs")
    before = {path: path.read_bytes() for path in source.rglob("*") if path.is_file()}
    record = take(source)
    assert (record.state, record.verdict and record.verdict.valid) == (State.FINISHED, True)
    assert (str(record.id), record.id.leg) == ("BOX/qwen3-vl-235b-a22b/Server/endpoints#1", "endpoints")
    assert record.counts is not None
    assert (record.counts.issued, record.counts.answered, record.counts.failed) == (80, 80, 0)
    assert record.result is not None
    assert (record.result.key, record.result.units) == ("qps", "Queries/s")
    assert record.versions["endpoints_commit"] == "ea33275"
    assert record.client_counters is not None
    assert record.client_counters["latency.early_stopping_percentiles.99.0"] == 5_000_000
    assert {pair.figure for pair in record.comparisons} >= {"n_samples_issued", "latency.percentiles.99.0"}
    assert record.loadgen_settings["load_pattern.type"] == "poisson"
    assert record.note is not None
    assert record.note.startswith("imported")
    assert record.ecc is None  # nobody knows how the machine was then
    assert "stand-in" in " ".join(record.not_submittable)
    assert "short run (--test_run)" in record.not_submittable
    (run,) = store.runs()
    kept = {path.relative_to(run.folder / REPORT) for path in (run.folder / REPORT).rglob("*") if path.is_file()}
    assert kept == {path.relative_to(source) for path in before}
    assert all((run.folder / REPORT / path.relative_to(source)).read_bytes() == text for path, text in before.items())
    assert set(record.hashes) == {f"{REPORT}/{path.as_posix()}" for path in kept}
    assert {path: path.read_bytes() for path in before} == before
    assert record.accuracy is not None
    assert {name: (s.correct, s.wrong) for name, s in record.accuracy.subsets.items()} == {
        "shopify_product_catalogue": (ROWS, 0)
    }


def test_one_report_is_one_run(take: Callable[..., RunRecord], data: Path, tmp_path: Path, store: ResultsStore) -> None:
    source = report(answers(data), 1.0).write(tmp_path / "theirs")
    record = take(source)
    (run,) = store.runs()
    for again in (source, run.folder):
        with pytest.raises(ConfigError, match=f"this report is that of {record.id} already"):
            take(again)
    with pytest.raises(ConfigError, match="already"):
        take(source, dataclasses.replace(leg(), system="OTHER"))
    assert len(store.runs()) == 1
    made = report(answers(data), 1.0)
    made.summary["tps"] = 1.5
    assert take(made.write(tmp_path / "others")).id.attempt == 2


Change = Callable[[Report], object]


def cut(made: Report) -> None:
    del made.events[2]["finish_reason"]
    made.summary["finish_reason_counts"] = {"stop": 79}


def shifted(made: Report, ms: int) -> None:
    """All answers of the measured phase later by so much, and a summary that has not seen it."""
    for event in made.events:
        if event["event_type"] == "sample.complete" and event["sample_uuid"] in made.index["performance"]:
            event["timestamp_ns"] += ms * MS


def asked_first(made: Report, row: int) -> None:
    """Another row in place of the last one of the measured phase."""
    last = list(made.index["performance"])[-1]
    made.index["performance"][last] = row


def emptied(made: Report, phase: str) -> None:
    """An answer of a phase has no text, and nothing in the summary shows it."""
    sample = next(iter(made.index[phase]))
    for event in made.events:
        if event["event_type"] == "sample.complete" and event["sample_uuid"] == sample:
            event["data"] = ["TextModelOutput"]


def half_failed(made: Report) -> None:
    """A scored answer that broke off in mid-stream: an error, and a text all the same."""
    sample = next(iter(made.index[DATASET]))
    at = next(at for at, event in enumerate(made.events) if event["sample_uuid"] == sample)
    told = {"event_type": "error.generic", "timestamp_ns": 1, "sample_uuid": sample, "data": ["ErrorData", "e", "gone"]}
    made.events.insert(at + 1, told)


def lost(made: Report) -> None:
    """An answer of the scored phase that no event tells of."""
    sample = next(iter(made.index[DATASET]))
    made.events = [event for event in made.events if event["sample_uuid"] != sample]


BREAKS: list[tuple[str, Change, set[str]]] = [
    ("issued", lambda made: made.summary.update(n_samples_issued=88), {"HN-EP-COUNT", "EP-FAILED"}),
    ("failed", lambda made: made.summary.update(n_samples_failed=3), {"EP-FAILED"}),
    ("interrupted", lambda made: made.summary.update(state="interrupted", complete=False), {"EP-COMPLETE"}),
    ("unsaid", lambda made: made.summary.pop("complete"), {"EP-COMPLETE"}),
    ("cut", cut, {"EP-FINISH"}),
    (
        "missing",
        lambda made: made.accuracy["accuracy_scores"][0]["response_counts"].update(missing=1, scored=ROWS - 1),
        {"EP-ACC-COMPLETE"},
    ),
    (
        "unscored",
        lambda made: made.accuracy["accuracy_scores"][0]["response_counts"].update(scored=ROWS - 1),
        {"EP-ACC-COMPLETE"},
    ),
    ("uncounted", lambda made: made.accuracy["accuracy_scores"][0].pop("response_counts"), {"EP-ACC-COMPLETE"}),
    ("score", lambda made: made.accuracy["accuracy_scores"][0].update(score=WRONG_SCORE), {"HN-EP-SCORE"}),
    ("empty", lambda made: emptied(made, "performance"), {"HN-EP-ANSWERS"}),
    ("empty scored", lambda made: emptied(made, DATASET), {"HN-EP-ANSWERS"}),
    ("half failed", half_failed, {"HN-EP-ANSWERS"}),
    ("lost", lost, {"HN-EP-ANSWERS"}),
    ("late", lambda made: shifted(made, 12_001), {"EP-LATENCY"}),
    ("shorter", lambda made: asked_first(made, 0), {"HN-EP-ROWS"}),
    ("beyond", lambda made: asked_first(made, 1 << 61), {"HN-EP-ROWS"}),
    ("unmeasured", lambda made: made.index.pop("performance"), {"HN-EP-EVENTS"}),
    ("unanswered", lambda made: made.index.pop(DATASET), {"HN-EP-EVENTS"}),
    ("nothing", lambda made: made.index.clear(), {"HN-EP-EVENTS"}),
    ("others", lambda made: made.index[DATASET].popitem(), {"HN-EP-SCORE"}),
    ("negative", lambda made: made.summary.update(n_samples_issued=-1, n_samples_failed=-1), {"EP-FAILED"}),
    ("seeds", lambda made: made.config["settings"]["runtime"].update(dataloader_random_seed=42), {"EP-SEEDS"}),
]


@pytest.mark.parametrize(("change", "rules"), [(c, r) for _, c, r in BREAKS], ids=[name for name, _, _ in BREAKS])
def test_what_speaks_against_a_report(
    take: Callable[..., RunRecord], data: Path, tmp_path: Path, change: Change, rules: set[str]
) -> None:
    made = report(answers(data), 1.0)
    change(made)
    record = take(made.write(tmp_path / "theirs"))
    assert rules <= rejects(record)
    assert record.verdict is not None
    assert not record.verdict.valid


def test_a_sample_that_failed_is_counted_and_told(take: Callable[..., RunRecord], data: Path, tmp_path: Path) -> None:
    texts: list[str | None] = [*answers(data)]
    texts[3] = None
    record = take(report(texts, 0.9).write(tmp_path / "theirs"))
    assert {"EP-FAILED", "EP-ACC-COMPLETE", "EP-ACC-EMPTY"} <= rejects(record)
    assert record.failure_kinds == {"request_failed": 11}  # ten of the measured phase, one that was scored
    assert (record.failures[0].index, record.failures[0].message) == (3, "error: HTTP 500")
    assert "failed samples" in record.not_submittable
    assert record.accuracy is not None
    assert record.accuracy.value is None
    assert record.accuracy.subsets["shopify_product_catalogue"].failed == 1


def test_wrong_answers_are_scored_as_the_client_does(
    take: Callable[..., RunRecord], data: Path, tmp_path: Path
) -> None:
    texts = answers(data, wrong=[0, 1])
    rows = dataclasses.replace(dataset(data), whole=True)
    score = BENCHMARK.score(((row, text.encode()) for row, text in enumerate(texts)), rows)
    assert score.value is not None
    assert 0 < score.value < 1
    record = take(report(texts, score.value).write(tmp_path / "theirs"))
    assert "HN-EP-SCORE" not in rejects(record)
    assert record.accuracy is not None
    assert record.accuracy.subsets["shopify_product_catalogue"].wrong == 2
    assert record.accuracy.value is None  # no number stands for a part of the benchmark's data set
    other = report(texts, score.value + 1e-6)
    other.summary["tps"] = 1.5  # of another run
    assert "HN-EP-SCORE" in rejects(take(other.write(tmp_path / "others")))


def test_a_report_without_its_events_is_doubted(take: Callable[..., RunRecord], data: Path, tmp_path: Path) -> None:
    written = report(answers(data), 1.0).write(tmp_path / "theirs")
    (written / "events.jsonl").unlink()
    record = take(written)
    assert rejects(record) == set()
    assert "HN-EP-EVENTS" in reviews(record)
    assert record.comparisons == []


def test_latencies_that_are_not_those_of_the_events_are_doubted(
    take: Callable[..., RunRecord], data: Path, tmp_path: Path
) -> None:
    made = report(answers(data), 1.0)
    made.summary["latency"]["percentiles"]["99.0"] = 2_000_000
    assert "HN-EP-FIGURES" in reviews(take(made.write(tmp_path / "theirs")))


def test_the_old_form_is_read_and_refused(take: Callable[..., RunRecord], tmp_path: Path) -> None:
    record = take(old_report(tmp_path / "theirs"))
    assert "HN-EP-FORM" in rejects(record)
    assert record.result is not None
    assert record.result.value == pytest.approx(48289 / 695.7)
    assert record.accuracy is not None
    assert record.accuracy.value == 0.7879


def test_a_run_of_full_length_must_have_lasted_and_asked_as_much(
    take: Callable[..., RunRecord], data: Path, tmp_path: Path
) -> None:
    record = take(report(answers(data), 1.0).write(tmp_path / "theirs"), leg(short=False))
    assert "EP-DURATION" in rejects(record)


def test_what_cannot_be_imported_is_told(take: Callable[..., RunRecord], tmp_path: Path, store: ResultsStore) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ConfigError, match="no report"):
        take(empty)
    (empty / "performance").mkdir()
    (empty / "performance" / "result_summary.json").write_text("[]", encoding="utf-8")
    with pytest.raises(RunBroke, match="cannot be read"):
        take(empty)
    assert store.runs() == []
    with pytest.raises(ConfigError, match="these are 2"):
        one_row([leg("Server"), leg("Offline")])


@pytest.mark.parametrize("name", ["config.yaml", "accuracy/accuracy_results.json", "performance/result_summary.json"])
def test_what_would_break_an_import_is_told_before_there_is_an_attempt(
    take: Callable[..., RunRecord], data: Path, tmp_path: Path, store: ResultsStore, name: str
) -> None:
    path = report(answers(data), 1.0).write(tmp_path / "theirs") / name
    text = path.read_text(encoding="utf-8")
    path.write_text("[1, {", encoding="utf-8")
    with pytest.raises(RunBroke, match="cannot be read"):
        take(tmp_path / "theirs")
    path.unlink()
    (tmp_path / "elsewhere").write_text(text, encoding="utf-8")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="is a link"):
        take(tmp_path / "theirs")
    assert store.runs() == []


def test_an_engine_that_is_no_server_is_refused(take: Callable[..., RunRecord], data: Path, tmp_path: Path) -> None:
    written = report(answers(data), 1.0).write(tmp_path / "theirs")
    with pytest.raises(ConfigError, match="of kind scripted is none"):
        take(written, leg(engine={"kind": "scripted"}))


# -- runs of ours ------------------------------------------------------------------------------------------------------

INFO = EngineInfo(
    kind="http",
    vocab_size=151_936,
    max_total_tokens=4096,
    slots=8,
    checkpoint=Checkpoint("tiny", "ab" * 32, stand_in=True, weight_data_type="bf16"),
    versions={"vllm": "0.11"},
    settings={},
    not_submittable=("stand-in checkpoint",),
)
WARM = Warmup(requests=8, answers=8, output_tokens=8, seconds=0.1, samples_per_s=80.0)


@pytest.fixture
def group(store: ResultsStore, data: Path, tmp_path: Path) -> ClientGroup:
    program = find_program(LAYOUT, {"ENDPOINTS_BIN": str(make_fake_client(tmp_path / "bin"))})
    store.root.mkdir(parents=True)
    return ClientGroup(
        benchmark=BENCHMARK,
        datasets={"catalogue": dataset(data)},
        data_dir=data,
        division="closed",
        program=program,
        serving=Serving("vllm", "tiny", (("0", "http://127.0.0.1:9"),), INFO),
        store=store,
        command=["make"],
        observer=ignore,
    )


def prepared(group: ClientGroup, data: Path, folder: Path, planned: PlannedLeg) -> Path:
    """A report whose configuration is the one that the client will be given."""
    made = report(answers(data), 1.0, planned.scenario)
    given = given_to(group, planned)
    made.config = {key: value for key, value in given.items() if value is not None}
    made.config["settings"] |= {"drain": {"warmup_timeout_s": 240.0}}
    made.config["settings"]["load_pattern"]["use_legacy_loadgen_qps_metrics"] = True
    made.summary["run_config"] = {"load_pattern": made.config["settings"]["load_pattern"]}
    return made.write(folder / "prepared")


def given_to(group: ClientGroup, planned: PlannedLeg) -> dict[str, Any]:
    """What the client will be told of a leg."""
    rate = Rate(target_qps=100.0, origin="configured")
    asked = group.asked(planned)
    chosen = choices(planned, ["http://127.0.0.1:9"], group.serving.model, rate, asked)
    found: dict[str, Any] = yaml.safe_load(config_text(PACK, planned.benchmark, chosen))
    return found


def test_a_run_of_ours(group: ClientGroup, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = leg()
    monkeypatch.setenv("FAKE_REPORT", str(prepared(group, data, tmp_path, planned)))
    record = run_endpoints_leg(planned, group, WARM)
    assert rejects(record) == set()
    assert record.verdict is not None
    assert record.verdict.valid
    (run,) = group.store.runs()
    assert run.record == record
    told = yaml.safe_load((run.folder / CONFIG).read_text(encoding="utf-8"))
    assert record.rate is not None
    assert told["settings"]["runtime"]["n_samples_to_issue"] == samples(planned, record.rate, ROWS)
    assert told["settings"]["runtime"]["n_samples_to_issue"] >= 662
    assert told["settings"]["runtime"]["min_duration_ms"] == 500
    link = (
        run.folder / "dataset_cache/shopify_product_catalogue/train+test/shopify_product_catalogue_train+test.parquet"
    )
    assert link.resolve() == dataset(data).files[0].path.resolve()
    assert record.versions["endpoints"] == "0.1.0"
    assert record.fingerprint.keys["client.endpoints"] == "0.1.0"
    assert record.hashes[CONFIG]
    assert record.warmup == WARM


def test_a_served_name_that_the_gate_refuses_is_told_before_the_run(group: ClientGroup) -> None:
    trained = dataclasses.replace(
        INFO, checkpoint=Checkpoint("m", "ab" * 32, stand_in=False, weight_data_type="nvfp4"), not_submittable=()
    )
    for name, division in (("qwen3-vl-nvfp4", "closed"), ("qwen3-vl-nvfp4", "network")):
        serving = dataclasses.replace(group.serving, model=name, info=trained)
        with pytest.raises(ConfigError, match=f"call the model {name}, and the entry is {division}"):
            run_endpoints_leg(leg(), dataclasses.replace(group, serving=serving, division=division), WARM)
    for name, division in (("qwen3-vl-nvfp4", "open"), ("x/Qwen3-VL-235B-A22B-Instruct-NVFP4", "closed")):
        serving = dataclasses.replace(group.serving, model=name, info=trained)
        with pytest.raises(RunBroke, match="report cannot be read"):  # it ran
            run_endpoints_leg(leg(), dataclasses.replace(group, serving=serving, division=division), WARM)


def test_a_configuration_that_is_not_the_one_it_was_given_is_refused(
    group: ClientGroup, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = prepared(group, data, tmp_path, leg())
    config = yaml.safe_load((written / "config.yaml").read_text(encoding="utf-8"))
    config["datasets"][1]["accuracy_config"]["num_repeats"] = 2
    (written / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    monkeypatch.setenv("FAKE_REPORT", str(written))
    record = run_endpoints_leg(leg(), group, WARM)
    assert "HN-EP-CONFIG" in rejects(record)
    assert record.verdict is not None
    found = next(f.found for f in record.verdict.findings if f.rule == "HN-EP-CONFIG")
    assert found == "datasets.1.accuracy_config.num_repeats 2"


def test_a_client_that_leaves_no_report_broke(group: ClientGroup) -> None:
    with pytest.raises(RunBroke, match="report cannot be read"):
        run_endpoints_leg(leg(), group, WARM)
    (run,) = group.store.runs()
    assert run.record.state is State.BROKEN


def test_an_interrupted_run_says_so(group: ClientGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.runs.endpoints_leg.run_client", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_endpoints_leg(leg(), group, WARM)
    (run,) = group.store.runs()
    assert (run.record.state, run.record.note) == (State.INTERRUPTED, "interrupted")


def test_a_share_is_of_the_same_clients_offline_run(
    group: ClientGroup, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = leg("Server", scenarios={"Offline": {"target_qps": 100}, "Server": {"target_qps": {"offline_share": 0.5}}})
    with pytest.raises(MissingError, match="none has finished"):
        run_endpoints_leg(shared, group, WARM)
    offline = leg(
        "Offline", scenarios={k: v.model_dump(exclude_unset=True) for k, v in shared.config.scenarios.items()}
    )
    monkeypatch.setenv("FAKE_REPORT", str(prepared(group, data, tmp_path, offline)))
    ran = run_endpoints_leg(offline, group, WARM)
    assert ran.result is not None
    monkeypatch.delenv("FAKE_REPORT")
    with pytest.raises(RunBroke):
        run_endpoints_leg(shared, group, WARM)
    rate = group.store.runs()[-1].record.rate
    assert rate is not None
    assert rate.target_qps == pytest.approx(ran.result.value / 2)
    assert rate.origin == f"{ran.id} x 0.5"


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ({"server": "vllm", "version": "0.32"}, False),
        ({"server": "vllm", "version": "0.32", "options": {"override_generation_config": {"top_k": 1}}}, True),
        ({"server": "vllm", "version": "0.32", "options": {"generation-config": "vllm"}}, True),
        ({"server": "trtllm-serve", "version": "1.3"}, True),
        ({"server": "vllm", "version": "0.32", "endpoints": ["http://127.0.0.1:9"]}, True),
    ],
)
def test_sampling_is_said_where_servers_would_sample_otherwise(engine: dict[str, Any], said: bool) -> None:
    served = leg().config.model_dump(mode="json")["engine"] | {"endpoints": []} | engine
    planned = leg(engine=served)
    chosen = choices(planned, ["http://127.0.0.1:9"], "m", Rate(target_qps=1.0, origin="x"), asked_of(planned, None))
    assert chosen.says_sampling is said


def test_without_the_client_nothing_is_started(
    store: ResultsStore, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ENDPOINTS_BIN", raising=False)
    session = ClientSession(store, data, ["make"], ignore, {})
    with pytest.raises(MissingError, match="ENDPOINTS_BIN is not set"):
        session.run([leg()])
    assert not store.root.exists()


def test_a_data_set_that_is_not_here_is_told_before_servers_start(
    store: ResultsStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENDPOINTS_BIN", str(make_fake_client(tmp_path / "bin")))
    session = ClientSession(store, tmp_path / "no data", ["make"], ignore, {})
    with pytest.raises(MissingError, match="data set"):
        session.run([leg()])
    assert store.runs() == []


# -- another benchmark by the same code --------------------------------------------------------------------------------


def table_of_tokens(name: str) -> Dataset:
    return Dataset(
        name=f"{made.GPT}/{name}", table=name, prompts=PromptTable.empty(1), subsets=("aime25",),
        ground_truth=("1",), files=(), stand_in=False,
    )  # fmt: skip


def test_a_token_benchmark_is_run_by_the_same_code(
    group: ClientGroup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = dataclasses.replace(leg("Offline", short=False), benchmark=made.GPT)
    tables = {name: table_of_tokens(name) for name in ("performance", "accuracy", "TEST07")}
    served = dataclasses.replace(group.serving, model="openai/gpt-oss-120b")
    own = dataclasses.replace(group, benchmark=benchmarks.get(made.GPT, PACK), datasets=tables, serving=served)
    written = tmp_path / "prepared"
    made.make_row(written, made.GPT, "Offline")
    given = given_to(own, planned)
    assert given["model_params"]["name"] == "openai/gpt-oss-120b"
    (written / "config.yaml").write_text(yaml.safe_dump({k: v for k, v in given.items() if v is not None}))
    made.change_data(written / "performance/result_summary.json", "run_config", {})
    monkeypatch.setenv("FAKE_REPORT", str(written))
    record = run_endpoints_leg(planned, own, WARM)
    assert rejects(record) == {"HN-EP-EVENTS"}  # of a run of ours they are asked for
    assert record.result is not None
    assert record.result.units.startswith("Samples/s")
    assert record.accuracy is not None
    assert record.accuracy.subsets == {}  # the client has data sets of its own: nothing of them is read twice
    (run,) = own.store.runs()
    assert not (run.folder / "dataset_cache").exists()
    assert (run.folder / "data").resolve() == (own.data_dir / made.GPT).resolve()
