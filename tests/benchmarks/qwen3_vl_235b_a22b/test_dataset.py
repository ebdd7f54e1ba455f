from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.benchmarks.base import file_sha256
from harness.benchmarks.qwen3_vl_235b_a22b import catalogue as catalogues
from harness.benchmarks.qwen3_vl_235b_a22b import dataset as datasets
from harness.benchmarks.qwen3_vl_235b_a22b import files, sidecar
from harness.benchmarks.qwen3_vl_235b_a22b.files import CATALOGUE_8K, TableSource, tables
from harness.errors import DatasetError, UnknownName
from harness.rules import load
from tests.benchmarks.qwen3_vl_235b_a22b.made import REVISION, SUBSET, Catalogue, row, source

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def fails(catalogue: Catalogue, *parts: str, rows: int = 2) -> None:
    with pytest.raises(DatasetError) as caught:
        catalogue.read(rows)
    for part in parts:
        assert part in str(caught.value)
    assert caught.value.mend


def test_reads_what_the_client_wrote(catalogue: Catalogue) -> None:
    path = catalogue.write([row(0), row(1, **{files.TRUE_SECONDHAND: "true", files.TRUE_BRAND: ""})])
    dataset = catalogue.read(2)
    assert (dataset.name, dataset.table) == ("qwen3-vl-235b-a22b/catalogue", "catalogue")
    assert dataset.rows == 2
    assert dataset.prompts.lengths.tolist() == [0, 0]
    assert dataset.subsets == (SUBSET, SUBSET)
    assert dataset.ground_truth == ("Home > Kitchen > Crêpe Pans",) * 2
    assert [(file.path, file.sha256) for file in dataset.files] == [(path, file_sha256(path))]
    assert (dataset.stand_in, dataset.whole, dataset.chats) == (False, True, None)
    truths = datasets.truths(dataset)
    assert (truths.brand, truths.is_secondhand) == (("Ørsted", ""), (False, True))
    assert truths.category == dataset.ground_truth
    assert datasets.outside(dataset) == []
    assert len(datasets.truths(dataset.head(1))) == 1


@pytest.mark.parametrize("place", range(3))
def test_where_a_table_is_looked_for(catalogue: Catalogue, place: int) -> None:
    path = source(1).candidates(catalogue.folder)[place]
    catalogue.write([row()], path=path)
    assert catalogue.read(1).files[0].path == path
    assert (
        path.relative_to(catalogue.folder).parts[0] == (REVISION, "shopify_product_catalogue", "dataset_cache")[place]
    )


def test_what_was_fetched_goes_before_what_lies_there(catalogue: Catalogue) -> None:
    catalogue.write([row()])
    fetched = catalogue.write([row()], path=source(1).fetched(catalogue.folder))
    assert catalogue.read(1).files[0].path == fetched


def test_a_table_that_is_nowhere(catalogue: Catalogue) -> None:
    fails(
        catalogue, "the data set is missing", str(catalogue.folder), f"{REVISION}/shopify_product_catalogue/train+test"
    )


def test_a_table_of_unknown_revision(catalogue: Catalogue) -> None:
    path = catalogue.write([row(0), row(1)], described=False)
    fails(catalogue, "revision of the table is unknown", REVISION, f"--adopt={path} --revision={REVISION}")


def test_a_table_of_another_revision(catalogue: Catalogue) -> None:
    path = catalogue.write([row(0), row(1)])
    place = sidecar.beside(path)
    place.write_text(place.read_text().replace(REVISION, "f" * 40))
    fails(catalogue, f"of another revision: some/catalogue at {'f' * 40}", REVISION)


def test_a_table_that_was_changed_since_it_was_described(catalogue: Catalogue) -> None:
    path = catalogue.write([row(0), row(1)])
    said = sidecar.beside(path).read_text()
    catalogue.write([row(0), row(2)])
    sidecar.beside(path).write_text(said)
    fails(catalogue, "not the one that was described")


@pytest.mark.parametrize("said", ["", "[]", "{}", '{"rows": "two"}', "null"])
def test_a_sidecar_that_says_nothing(catalogue: Catalogue, said: str) -> None:
    sidecar.beside(catalogue.write([row(0), row(1)])).write_text(said)
    fails(catalogue, "not a description of a table")


def test_a_sidecar_of_wrong_types(catalogue: Catalogue) -> None:
    place = sidecar.beside(catalogue.write([row(0), row(1)]))
    place.write_text(json.dumps({**json.loads(place.read_text()), "rows": "2"}))
    fails(catalogue, "rows is '2'")


@pytest.mark.parametrize("rows", [1, 3])
def test_a_wrong_number_of_rows(catalogue: Catalogue, rows: int) -> None:
    catalogue.write([row(i) for i in range(rows)])
    fails(catalogue, f"the table has {rows} rows", "expected: 2 rows")


def test_a_stand_in_may_have_fewer_rows_and_needs_no_sidecar(stand_in: Catalogue) -> None:
    stand_in.write([row(0), row(1)], described=False)
    dataset = stand_in.read(5)
    assert (dataset.rows, dataset.stand_in, dataset.whole) == (2, True, False)
    assert stand_in.read(2).whole
    fails(stand_in, "the table has 2 rows", rows=1)
    stand_in.write([], described=False)
    fails(stand_in, "the table has 0 rows")


def test_columns_that_are_missing(catalogue: Catalogue) -> None:
    some = {name: value for name, value in row().items() if name not in (files.IMAGE, files.TRUE_BRAND)}
    catalogue.write([some, some])
    fails(catalogue, "lacks the columns product_image_base64, ground_truth_brand")


def test_a_column_of_another_type(catalogue: Catalogue) -> None:
    path = catalogue.write([row(0), row(1)])
    table = pq.read_table(path)
    place = table.schema.get_field_index(files.TRUE_SECONDHAND)
    pq.write_table(table.set_column(place, files.TRUE_SECONDHAND, pa.array([True, False])), path)
    with pytest.raises(DatasetError, match=r"the column ground_truth_is_secondhand is of type bool"):
        catalogues.Catalogue.open(path)


@pytest.mark.parametrize(
    ("categories", "said"),
    [
        ("[]", "the list of categories is '[]'"),
        ("", "the list of categories is no JSON"),
        (None, "the list of categories is no JSON"),
        ("['A > B']", "the list of categories is no JSON"),
        ('{"A": 1}', "the list of categories is"),
        ('["A", 1]', "the list of categories is"),
        ('["A", ""]', "the list of categories is"),
        ("[" + '"A",' * 30 + "1]", "..."),
    ],
)
def test_a_list_of_categories_that_is_none(catalogue: Catalogue, categories: str | None, said: str) -> None:
    catalogue.write([row(0), row(1, **{files.CATEGORIES: categories})])
    fails(catalogue, said, "row 1, column potential_product_categories")


def test_categories_may_hold_half_a_character() -> None:
    assert datasets.candidates('["\\ud83d > A"]') == ["\ud83d > A"]


@pytest.mark.parametrize("kind", ["jpeg", "", None, "JPEG;x"])
def test_a_format_of_a_picture_that_is_none(catalogue: Catalogue, kind: str | None) -> None:
    catalogue.write([row(0), row(1, **{files.FORMAT: kind})])
    fails(catalogue, f"row 1 names the picture's format {kind!r}", "upper case")


@pytest.mark.parametrize("truth", ["", None])
def test_a_row_without_a_true_category(catalogue: Catalogue, truth: str | None) -> None:
    catalogue.write([row(0), row(1, **{files.TRUE_CATEGORY: truth})])
    fails(catalogue, "row 1 has no true category")


@pytest.mark.parametrize("said", ["True", "1", "", None])
def test_whether_a_product_is_second_hand_that_is_no_boolean(catalogue: Catalogue, said: str | None) -> None:
    catalogue.write([row(0), row(1, **{files.TRUE_SECONDHAND: said})])
    with pytest.raises(DatasetError, match=f"(?s)row 1 holds {said!r}.*expected: true or false"):
        datasets.truths(catalogue.read(2))


def test_a_truth_that_is_not_offered_is_told(catalogue: Catalogue) -> None:
    catalogue.write([row(0), row(1, **{files.TRUE_CATEGORY: "Home > Kitchen"})])
    assert datasets.outside(catalogue.read(2)) == [1]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(st.lists(TEXT.filter(bool), min_size=1, max_size=5), TEXT.filter(bool), TEXT, st.booleans()),
        min_size=1,
        max_size=150,
    ),
    group=st.sampled_from([1, 7, 64, 100, 1000]),
    large=st.booleans(),
)
def test_any_catalogue_comes_back_as_it_was_written(
    catalogue: Catalogue, rows: list[tuple[list[str], str, str, bool]], group: int, large: bool
) -> None:
    path = catalogue.write(
        (
            row(
                **{
                    files.CATEGORIES: json.dumps(listed),
                    files.TRUE_CATEGORY: truth,
                    files.TRUE_BRAND: brand,
                    files.TRUE_SECONDHAND: json.dumps(used),
                }
            )
            for listed, truth, brand, used in rows
        ),
        group=group,
        large=large,
    )
    dataset = catalogue.read(len(rows))
    truths = datasets.truths(dataset)
    assert list(zip(truths.category, truths.brand, truths.is_secondhand, strict=True)) == [each[1:] for each in rows]
    found = catalogues.Catalogue.open(path)
    listed_ = [datasets.candidates(text) for text in found.column(files.CATEGORIES)]
    assert listed_ == [each[0] for each in rows]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_told_or_still_readable(stand_in: Catalogue, data: st.DataObject) -> None:
    path = stand_in.write([row(i) for i in range(3)], described=False)
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        assert stand_in.read(3).rows == 3
    except DatasetError as error:
        assert str(path.parent) in str(error)


@pytest.mark.parametrize("pieces", [[0, 1, 2, 3, 4], [1, 3], [4], [0, 4]])
def test_pieces_are_read_in_order_whatever_is_left_out(catalogue: Catalogue, pieces: list[int]) -> None:
    path = catalogue.write([row(i) for i in range(150)], group=100)
    table = catalogues.Catalogue.open(path)
    found = table.pieces()
    assert [(p.group, p.first_in_group, p.first, p.rows) for p in found] == [
        (0, 0, 0, 64),
        (0, 64, 64, 36),
        (1, 0, 100, 50),
    ]
    small = table.pieces(rows=70)
    assert [(p.first, p.rows) for p in small] == [(0, 64), (64, 6)]
    reader = catalogues.Reader(table, [files.TITLE])
    for piece in (found[i] for i in pieces if i < len(found)):
        titles = [title for (title,) in reader.read(piece)]
        assert titles == [f"Crêpe pan {i} · 鍋" for i in range(piece.first, piece.first + piece.rows)]


def test_reading_a_table_leaves_its_pictures_on_the_disk(catalogue: Catalogue) -> None:
    noise = "".join(chr(65 + (i * i) % 26) for i in range(100_000))
    rows = 200
    path = catalogue.write(row(i, **{files.IMAGE: noise + str(i)}) for i in range(rows))
    assert sum(len(text or "") for text in catalogues.Catalogue.open(path).column(files.IMAGE)) > 20_000_000
    before = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(before)
    pa.set_memory_pool(counted)
    tracemalloc.start()
    try:
        catalogue.read(rows)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)
    assert 0 < counted.max_memory() < 5_000_000


def test_what_the_rounds_want() -> None:
    rules = load("v6.1").image_benchmark(files.NAME)
    wanted = tables(rules)
    assert [(each.table, each.splits, each.relative.name) for each in wanted] == [
        ("catalogue", "train+test", "shopify_product_catalogue_train+test.parquet"),
        ("catalogue-8k", "train", "shopify_product_catalogue_8k_train.parquet"),
    ]
    assert all(each.source.revision in each.fetched(Path("x")).parts for each in wanted)
    with pytest.raises(UnknownName, match="did you mean 'catalogue-8k'"):
        TableSource.of(rules, "catalogue-9k")
    one = rules.model_copy(update={"dataset_sources": {"default": rules.dataset_sources["default"]}})
    assert [each.table for each in tables(one)] == ["catalogue"]
    with pytest.raises(UnknownName, match="one of catalogue"):
        TableSource.of(one, CATALOGUE_8K)
    with pytest.raises(TypeError, match="no benchmark of pictures"):
        load("v6.1").image_benchmark("gpt-oss-120b")
