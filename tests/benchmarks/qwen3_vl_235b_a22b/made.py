"""Small catalogues as the mlcommons client writes them, for a data set of a few rows."""

from __future__ import annotations

import base64
import functools
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from harness.benchmarks.base import Dataset, file_sha256
from harness.benchmarks.qwen3_vl_235b_a22b import files, images
from harness.benchmarks.qwen3_vl_235b_a22b.dataset import Wanted, read
from harness.benchmarks.qwen3_vl_235b_a22b.files import CATALOGUE, TableSource
from harness.benchmarks.qwen3_vl_235b_a22b.sidecar import Sidecar
from harness.rules.benchmark import DatasetSource

SUBSET = "products"
REVISION = "0123456789abcdef0123456789abcdef01234567"


def picture(kind: str = "PNG", size: tuple[int, int] = (40, 30), colour: str = "teal", mode: str = "RGB") -> bytes:
    """The file of a picture that is not of one colour alone."""
    image = Image.radial_gradient("L").resize(size).convert("RGB")
    image.paste(colour, (0, 0, size[0] // 2, size[1] // 2))
    buffer = io.BytesIO()
    image.convert(mode).save(buffer, format=kind)
    return buffer.getvalue()


@functools.cache
def _sent() -> tuple[str, str]:
    kind, content = images.round_trip(images.opened(picture()))
    return kind, base64.b64encode(content).decode()


def row(number: int = 0, **changes: str | None) -> dict[str, str | None]:
    """A row as the client writes it."""
    kind, in_base64 = _sent()
    made: dict[str, str | None] = {
        files.TITLE: f"Crêpe pan {number} · 鍋",
        files.DESCRIPTION: "<p>A pan.</p>\n```js\nlet a = {};\n```",
        files.IMAGE: in_base64,
        files.FORMAT: kind,
        files.CATEGORIES: json.dumps(["Home > Kitchen > Crêpe Pans", "Home > Garden"]),
        files.TRUE_CATEGORY: "Home > Kitchen > Crêpe Pans",
        files.TRUE_BRAND: "Ørsted",
        files.TRUE_SECONDHAND: "false",
    }
    assert set(changes) <= set(made)
    return {**made, **changes}


def source(rows: int, table: str = CATALOGUE) -> TableSource:
    """The table as a round would want it."""
    return TableSource(
        table, DatasetSource(repo="some/catalogue", revision=REVISION, splits=["train", "test"], rows=rows)
    )


@dataclass
class Catalogue:
    """Writes a table into a data set's folder, with a sidecar that describes it unless told otherwise."""

    folder: Path
    metadata: Mapping[bytes, bytes] = field(default_factory=dict)

    def write(
        self,
        rows: Iterable[Mapping[str, str | None]],
        *,
        path: Path | None = None,
        group: int = 1_000_000,
        described: bool = True,
        large: bool = False,
    ) -> Path:
        rows = list(rows)
        wanted = source(len(rows))
        place = path or wanted.plain(self.folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        kind = pa.large_string() if large else pa.string()
        columns = {name: pa.array([each[name] for each in rows], kind) for name in (rows[0] if rows else files.COLUMNS)}
        table = pa.table(columns).replace_schema_metadata(dict(self.metadata))
        pq.write_table(table, place, row_group_size=group)
        if described:
            about = wanted.source
            Sidecar(
                about.repo, about.revision, wanted.splits, len(rows), file_sha256(place), "12.3.0", "fetched"
            ).write(place)
        return place

    def read(self, rows: int, table: str = CATALOGUE) -> Dataset:
        return read(self.folder, table, Wanted(source(rows, table), SUBSET))
