"""Exports without rows that have folders, in every format: one file, in the folder of NULLs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.s3.faulty import FaultyS3, connection_to

from dbt.adapters.mzs3.errors import LocationError
from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.export.history_table import TABLE
from dbt.adapters.mzs3.export.monitor import RunContext
from dbt.adapters.mzs3.export.verify_copy import verify_copy
from dbt.adapters.mzs3.formats.write import FORMATS

pytestmark = [pytest.mark.spark, pytest.mark.parametrize("kind", FORMATS)]
Export = Callable[..., tuple[int, int]]
Folders = Callable[[], list[str]]

ROWS = "select id, id % 3 as d, case id % 2 when 0 then 'a/b' end as c from range({})"
OF_NULLS = "d=__HIVE_DEFAULT_PARTITION__/c=__HIVE_DEFAULT_PARTITION__"


@pytest.fixture
def export(copy: Callable[..., CopyResult], faulty: FaultyS3, bucket: str, kind: str) -> Export:
    """Makes an export of so many rows, which is as its manifest says; gives its rows and files."""
    location = f"s3://{bucket}/x"

    def make(rows: int, on_existing: str = "overwrite", **more: Any) -> tuple[int, int]:
        options = {"format": kind, "partition_by": ["d", "c"], "parts": 2, **more}
        made = copy(ROWS.format(rows), location, on_existing=on_existing, **options)
        found = verify_copy({"default": connection_to(faulty.endpoint)}, "default", location)
        assert (found.problems, found.unlisted) == ((), ())
        return made.rows, made.files

    return make


@pytest.fixture
def files(objects: Callable[[str], dict[str, bytes]], bucket: str, kind: str) -> Folders:
    def named() -> list[str]:
        return sorted(key.removeprefix("x/") for key in objects(bucket) if key.endswith(kind))

    return named


def test_the_one_file_is_compared_and_replaced_as_others_are(
    export: Export, files: Folders, kind: str
) -> None:
    assert export(0, "fail") == (0, 1)
    assert files() == [f"{OF_NULLS}/part-0000-0001.{kind}"]
    assert export(0, "resume") == (0, 1)  # compared with what stands there
    with pytest.raises(LocationError, match="this run gives another one"):
        export(3, "resume")
    assert export(0) == (0, 1)
    assert files() == [f"{OF_NULLS}/part-0000-0002.{kind}"]


def test_it_is_no_partition_that_stays_beside_those_with_rows(
    export: Export, files: Folders
) -> None:
    export(0, "fail")
    assert export(30, partition_by=["d"]) == (30, 3)  # whatever columns those have
    assert {name.split("/")[0] for name in files()} == {"d=0", "d=1", "d=2"}


def test_a_full_refresh_leaves_none_of_the_rows_that_were(
    export: Export, files: Folders, kind: str
) -> None:
    export(30, "fail")
    assert export(0, full_refresh=True) == (0, 1)
    assert files() == [f"{OF_NULLS}/part-0000-0002.{kind}"]


def test_the_history_has_it_as_a_run_that_wrote(export: Export, spark: Any, kind: str) -> None:
    run = RunContext(schema="default", identifier="empty", invocation_id=f"empty {kind}")
    export(0, "fail", context=run)
    asked = f"select status, rows, files from default.{TABLE} where invocation_id = 'empty {kind}'"
    assert [tuple(row) for row in spark.sql(asked).collect()] == [("rows", 0, 1)]
