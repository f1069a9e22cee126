"""A large object is read by several tasks, and nobody can tell."""

from __future__ import annotations

import gzip
import os
from typing import Any

import pytest
from pyspark.sql import functions as F

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.source import fetch, large_objects
from dbt.adapters.mzs3.source.listing import plan
from dbt.adapters.mzs3.spark.frames import reusable_rows

RANGE_BYTES = 3_000
ROWS = 2_000


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many objects were cut in each run; ranges are small enough for objects of a test."""
    counts: list[int] = []
    rows_in_ranges = large_objects.rows_in_ranges

    def counting(spark: Any, spec: Any, objects: Any, table: Any) -> Any:
        counts.append(len(objects))
        return rows_in_ranges(spark, spec, objects, table)

    monkeypatch.setattr(large_objects, "RANGE_BYTES", RANGE_BYTES)
    monkeypatch.setattr(fetch, "rows_in_ranges", counting)
    return counts


def record(number: int) -> str:
    return f'{number},"two ""lines"",\n of {number}"\n'


def turned(number: int) -> str:
    return f'"two ""lines"",\n of {number}",{number}\n'


@pytest.mark.light
def test_large_and_small_objects_together(lake: Any, cut: list[int]) -> None:
    lake.external = {"header_match": "reorder"}
    lake.columns = [{"name": "id", "data_type": "bigint"}, {"name": "note"}]
    lake.put("a.csv", "id,note\n1,first\n")
    lake.ingest()
    assert cut == []
    lake.put("b.csv", "note,id\n" + "".join(turned(n) for n in range(ROWS)))
    lake.put("c.csv", "note,id\nlast,3\n")
    # Large enough to be cut, by its name plain, and compressed all the same.
    noise = "".join(f"{os.urandom(15).hex()},{n}\n" for n in range(ROWS))
    lake.put("d.csv", gzip.compress(f"note,id\n{noise}".encode()))
    report = lake.ingest()
    assert cut == [1]
    assert report.rows == 2 * ROWS + 1
    expected = [("a.csv", 1, 1, "first")]
    expected += [("b.csv", n + 1, n, f'two "lines",\n of {n}') for n in range(ROWS)]
    expected += [("c.csv", 1, 3, "last")]
    expected += [
        ("d.csv", n + 1, n, line.partition(",")[0]) for n, line in enumerate(noise.splitlines())
    ]
    assert lake.rows("id", "note") == expected
    times = lake.spark.sql(
        f"SELECT count(*) FROM {lake.relations.source} JOIN {lake.relations.objects} "
        "ON _mz_object = object AND _mz_last_modified = last_modified"
    )
    assert times.first()[0] == 2 * ROWS + 2


@pytest.mark.light
def test_a_large_object_of_json_lines(lake: Any, cut: list[int]) -> None:
    lake.external = {"format": "jsonl", "header": ["id", "note"], "header_match": "subset"}
    lines = (f'{{"more":[{n}],"note":"n\\n{n}","id":{n}}}\n' for n in range(ROWS))
    lake.put("b.jsonl", "".join(lines))
    lake.columns = [{"name": "id", "data_type": "int"}, {"name": "note", "data_type": "string"}]
    assert lake.ingest().rows == ROWS
    assert cut == [1]
    assert lake.rows("id", "note") == [("b.jsonl", n + 1, n, f"n\n{n}") for n in range(ROWS)]


@pytest.mark.light
def test_a_plan_may_hold_more_than_what_was_decided_on(
    lake: Any, cut: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when Spark lists again, and something has come meanwhile."""
    lake.put("b.csv", "id,note\n" + "".join(record(n) for n in range(ROWS)))

    def write_plan(ledger: Ledger, epoch: str, objects: Any, *, fits_driver: bool) -> None:
        assert not fits_driver
        lake.put("c.csv", "id,note\n1,late\n")
        head = lake.client.head_object(Bucket=lake.bucket, Key="orders/c.csv")
        late = objects.withColumns(
            {
                "object": F.lit(f"s3://{lake.bucket}/orders/c.csv"),
                "etag": F.lit(head["ETag"].strip('"')),
                "size": F.lit(head["ContentLength"]).cast("bigint"),
            }
        )
        original(ledger, epoch, objects.unionByName(late))

    original = Ledger.write_plan
    monkeypatch.setattr(Ledger, "write_plan", write_plan)
    monkeypatch.setattr(plan, "reusable_rows", lambda frame, few: reusable_rows(frame, few=False))
    assert lake.ingest().rows == ROWS + 1
    assert cut == [1]
    assert lake.rows("id", "note")[-1] == ("c.csv", 1, "1", "late")


@pytest.mark.light
def test_a_plan_may_hold_less_than_what_was_decided_on(
    lake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when Spark lists again, and all has gone meanwhile."""
    original = Ledger.write_plan
    monkeypatch.setattr(
        Ledger,
        "write_plan",
        lambda ledger, epoch, objects, fits_driver: original(ledger, epoch, objects.limit(0)),
    )
    monkeypatch.setattr(plan, "reusable_rows", lambda frame, few: reusable_rows(frame, few=False))
    lake.put("a.csv", "id,note\n1,first\n")
    assert lake.ingest().rows == 0
    monkeypatch.undo()
    assert lake.ingest().rows == 1
    assert lake.rows("id") == [("a.csv", 1, "1")]


@pytest.mark.light
def test_what_is_wrong_is_told_as_of_any_object(lake: Any, cut: list[int]) -> None:
    lines = [record(n) for n in range(ROWS)]
    lake.put("b.csv", "id,note\n" + "".join(lines[:1500]) + '7,a"b\n' + "".join(lines[1500:]))
    byte = len("id,note\n" + "".join(lines[:1500]))
    with pytest.raises(SourceError, match=f"line 3002, byte {byte}: column 2 has a quote inside"):
        lake.ingest()
    assert cut == [1]


@pytest.mark.light
def test_rejects_of_wrong_quotes_are_those_of_any_object(lake: Any, cut: list[int]) -> None:
    lake.external = {"on_bad_row": "reject"}
    lines = [record(n) for n in range(ROWS)]
    lake.put("b.csv", "id,note\n" + "".join(lines[:1500]) + '7,a"b\n' + "".join(lines[1500:]))
    lake.put("c.csv", "id,note\n" + "".join(lines))
    report = lake.ingest()
    assert (report.rows, report.rejected) == (2 * ROWS, 1)
    assert cut == [2, 1]
    numbers = [record for name, record, *_ in lake.rows() if name == "b.csv"]
    assert numbers == [*range(1, 1501), *range(1502, ROWS + 2)]


@pytest.mark.light
def test_an_object_with_another_header_is_skipped_whole(lake: Any, cut: list[int]) -> None:
    lake.external = {"on_header_mismatch": "skip_object"}
    lake.put("a.csv", "id,note\n1,first\n")
    lake.put("b.csv", "id,other\n" + "".join(record(n) for n in range(ROWS)))
    lake.put("c.csv", "id,note\n2,second\n")  # a first run has to take more objects than one
    assert lake.ingest().rows == 2
    assert cut == []  # the driver compares the header before it cuts an object
    assert lake.states()["b.csv"][0] == "skipped"
