"""The two encodings of a file compared: what is counted, by column, and what is a difference."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from support.s3.opened import bucket_of
from support.shard.files import (
    compared,
    rows_of,
    tagged,
    with_structure_of,
    with_structure_of_other_rows,
    written,
)
from support.shard.values import list_of, map_of, record_of

from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.shard.batch import read
from dbt.adapters.mzs3.shard.batch.read import FileComparison
from dbt.adapters.mzs3.shard.batch.write import BatchLayout
from dbt.adapters.mzs3.shard.types import Type
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location

INTEGER, TEXT, DOUBLE = Type("integer"), Type("text"), Type("double")
NUMERIC = Type("numeric", precision=10, scale=2)
KINDS = [INTEGER, TEXT, NUMERIC]
ROWS = [[1, None, 3], ["a", "b", None], [Decimal("1.50"), None, Decimal("-2.25")]]


def file(kinds: list[Type], columns: list[list[Any]]) -> bytes:
    [data] = written(BatchLayout(tagged(*kinds)), [rows_of(kinds, columns)])
    return data


def test_all_values_of_all_columns_are_compared() -> None:
    assert compared(file(KINDS, ROWS)) == FileComparison(9, {})


def test_values_that_differ_are_counted_by_column() -> None:
    wrong = with_structure_of_other_rows(file(KINDS, ROWS))
    # The row in the middle stays where it is; 1 and 3 change places, and so on.
    assert compared(wrong) == FileComparison(9, {0: 2, 1: 2, 2: 2})
    other = [[1, None, 4], *ROWS[1:]]
    one = with_structure_of(file(KINDS, ROWS), file(KINDS, other))
    assert compared(one) == FileComparison(9, {0: 1})


@pytest.mark.parametrize(
    ("kind", "value", "other"),
    [
        (INTEGER, 1, None),
        (TEXT, "", None),
        (list_of(INTEGER), [1, 2], [2, 1]),
        (list_of(INTEGER), [], None),
        (record_of(TEXT, INTEGER), {"0": "a", "1": None}, {"0": "a", "1": 0}),
        (map_of(TEXT, INTEGER), [{"0": "a", "1": 1}], [{"0": "a", "1": 2}]),
    ],
    ids=str,
)
def test_values_of_any_type_are_compared_one_by_one(kind: Type, value: Any, other: Any) -> None:
    same = [value] * 3
    wrong = with_structure_of(file([kind], [same]), file([kind], [[value, other, value]]))
    assert compared(wrong) == FileComparison(3, {0: 1})


@pytest.mark.parametrize("kind", [DOUBLE, Type("real"), record_of(list_of(DOUBLE))], ids=str)
def test_zeros_of_both_signs_are_a_difference_between_encodings(kind: Type) -> None:
    def of(zero: float) -> bytes:
        value = {"0": [zero, None]} if kind.children else zero
        return file([kind], [[value, None]])

    assert compared(of(-0.0)) == FileComparison(2, {})
    assert compared(with_structure_of(of(0.0), of(-0.0))) == FileComparison(2, {0: 1})


def test_nan_is_no_difference_between_encodings() -> None:
    assert compared(file([DOUBLE], [[float("nan"), -0.0]])) == FileComparison(2, {})


@pytest.mark.parametrize(
    "layout",
    [
        BatchLayout(tagged(*KINDS), "codec"),
        BatchLayout(tagged(*KINDS), "structured"),
        BatchLayout(tagged(*KINDS), "dual", version=2),
    ],
    ids=["messages alone", "columns alone", "columns that must not be read"],
)
def test_without_two_encodings_nothing_is_compared(layout: BatchLayout) -> None:
    [data] = written(layout, [rows_of(KINDS, ROWS)])
    assert compared(data) == FileComparison(0, {})


def test_a_task_has_a_row_for_each_file_and_names_one_that_can_not_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = file(KINDS, ROWS)
    files = {"right": right, "wrong": with_structure_of_other_rows(right), "hurt": right[:-9]}
    monkeypatch.setattr(read, "open_store", lambda _, at: bucket_of(SimpleNamespace(), at.bucket))
    monkeypatch.setattr(read, "open_file", lambda *of: pa.BufferReader(files[of[2].key]))

    def compared_files(*keys: str) -> list[dict[str, Any]]:
        listed = [{"task": 0, "key": key, "size": 1, "etag": "e"} for key in keys]
        compare_all = read.compare_files(AwsConnection(), S3Location("acme", ""))
        found = compare_all(iter([pa.RecordBatch.from_pylist(listed)]))
        return [row for batch in found for row in batch.to_pylist()]

    assert compared_files("right", "wrong") == [
        {"key": "right", "compared": 9, "differing": []},
        {"key": "wrong", "compared": 9, "differing": [(0, 2), (1, 2), (2, 2)]},
    ]
    with pytest.raises(ExecutorError, match="s3://acme/hurt: it can't be read"):
        compared_files("right", "hurt")
