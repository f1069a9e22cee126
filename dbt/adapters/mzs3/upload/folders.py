"""Hive folders, `country=NZ/day=2024-01-01/`, and the rows of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.write.csv.scalars import NotUtf8
from dbt.adapters.mzs3.formats.write.csv.values import value_text

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
# Besides letters and digits, the ASCII that is not percent-encoded in a folder's name. Non-ASCII
# characters are never encoded: Hive and Spark would decode each of their bytes as a character.
_SAFE = " !()@,;$&'~"
_LAST_ASCII = 127


@dataclass(frozen=True)
class Run:
    """Adjacent rows of one part and folder; `folder` has the columns' values, None for NULL."""

    part: int
    folder: tuple[str | None, ...]
    rows: pa.RecordBatch


def runs(batch: pa.RecordBatch, partition_by: Sequence[int]) -> Iterator[Run]:
    """Cuts the batch where the part (the first column) or the folder changes.

    `partition_by` are the indexes of the folders' columns, without counting the first column of
    the batch. The runs don't have these columns.
    """
    part, *columns = batch.columns
    keys = [columns[i] for i in partition_by]
    rows = batch.select([i + 1 for i in range(len(columns)) if i not in partition_by])
    changes = [pc.run_end_encode(key).run_ends.to_pylist() for key in (part, *keys)]
    starts = sorted({0}.union(*changes) - {batch.num_rows})
    start_rows = pa.array(starts, pa.int64())
    names = [part.take(start_rows), *(_texts(key.take(start_rows)) for key in keys)]
    ends = [*starts[1:], batch.num_rows]
    for start, end, (number, *folder) in zip(
        starts, ends, zip(*(name.to_pylist() for name in names), strict=True), strict=True
    ):
        yield Run(number, tuple(folder), rows.slice(start, end - start))


def folder_of(names: Sequence[str], texts: Sequence[str | None]) -> str:
    """The path of a folder, with a final slash; empty if there are no partition columns. Raises
    ExecutorError for values that no folder name can represent."""
    return "".join(
        f"{escape_folder(name)}={_value(name, text)}/"
        for name, text in zip(names, texts, strict=True)
    )


def _value(name: str, text: str | None) -> str:
    if text is None:
        return NULL_FOLDER
    if text in ("", NULL_FOLDER):
        what = "an empty text" if text == "" else f"the text {NULL_FOLDER}, which means NULL"
        raise ExecutorError(
            f"partition_by: column {name} holds {what}; no folder can stand for it. "
            f"Select nullif({name}, '{text}')"
        )
    return escape_folder(text)


def _texts(values: pa.Array) -> pa.Array:
    """The values as text: as in CSV, but `true` and `false`, as readers of folders expect."""
    if pa.types.is_boolean(values.type):
        return pc.cast(values, pa.large_string())
    try:
        return value_text(values)
    except NotUtf8 as error:
        raise ExecutorError(
            "a column of partition_by holds text that is not valid UTF-8, which no folder's name "
            "can carry. Select make_valid_utf8() of it"
        ) from error


def escape_folder(text: str) -> str:
    """A column's name or value, percent-encoded for a folder's name."""
    return "".join(c if ord(c) > _LAST_ASCII else quote(c, safe=_SAFE) for c in text)
