"""Objects of Parquet, Avro and JSON lines, from S3 to a source's rows."""

from __future__ import annotations

import gzip
import io
from datetime import date, datetime, timezone
from decimal import Decimal

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.source.reset import reset_source

pytestmark = pytest.mark.spark

INSTANT = datetime(2024, 2, 29, 12, 30, tzinfo=timezone.utc)


def parquet(**columns) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def avro(types: dict[str, object], *rows: tuple) -> bytes:
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    schema = {"type": "record", "name": "order", "fields": fields}
    sink = io.BytesIO()
    records = [dict(zip(types, row, strict=True)) for row in rows]
    fastavro.writer(sink, schema, records, "deflate")
    return sink.getvalue()


def test_parquet_with_aliases_in_any_order_and_objects_that_do_not_fit(lake):
    lake.external = {
        "format": "parquet",
        "header_match": "reorder",
        "on_header_mismatch": "skip_object",
    }
    lake.columns = [{"name": "a", "data_type": "decimal(12,2)"}, {"name": "b"}]
    lake.put("1.parquet", parquet(amount=[1, None, 3], at=pa.array([INSTANT] * 3)))
    lake.put("2.parquet", parquet(at=[INSTANT], amount=[Decimal("4.50")]))
    lake.put("3.parquet", parquet(amount=[1], price=[2]))
    lake.put("4.parquet", parquet(amount=[1.5], at=[INSTANT]))
    lake.put("5.parquet", b"")
    report = lake.ingest()
    assert (report.objects, report.skipped, report.rows) == (3, 2, 4)
    frame = lake.spark.table(lake.relations.source).select("a", "b")
    assert dict(frame.dtypes) == {"a": "decimal(12,2)", "b": "timestamp"}
    assert lake.rows("a") == [
        ("1.parquet", 1, Decimal("1.00")),
        ("1.parquet", 2, None),
        ("1.parquet", 3, Decimal("3.00")),
        ("2.parquet", 1, Decimal("4.50")),
    ]
    instants = {row[0] for row in frame.selectExpr("string(b)").collect()}
    assert instants == {"2024-02-29 12:30:00"}
    states = lake.states()
    assert states["3.parquet"] == (
        "skipped",
        0,
        "header is amount,price but the names of the source's header are amount,at, in any order: "
        "'at' is missing, 'price' is not one of them",
    )
    assert states["4.parquet"] == (
        "skipped",
        0,
        "its fields are not as declared: 'amount' is double, which can't be read as decimal(12,2)",
    )
    assert states["5.parquet"] == ("fetched", 0, None)


@pytest.mark.light
def test_a_declared_name_is_the_key_or_the_field_of_that_name(lake):
    lake.external = {"format": "jsonl"}
    lake.columns = [{"name": "gross", "data_type": "bigint"}, {"name": "net"}]
    lake.put("1.jsonl", '{"net":10,"gross":12}\n')
    lake.put("2.jsonl", '{"gross":22,"net":20}\n')
    lake.ingest()
    assert lake.rows("gross", "net") == [("1.jsonl", 1, 12, 10), ("2.jsonl", 1, 22, 20)]
    assert lake.spark.table(lake.relations.source).columns[:2] == ["gross", "net"]
    reset_source(lake.spark, lake.definition())
    for name in ("1.jsonl", "2.jsonl"):
        lake.remove(name)
    lake.external = {}
    lake.put("1.csv", "net,gross\n10,12\n")
    lake.ingest()
    lake.put("2.csv", "net,gross\n20,22\n")
    lake.ingest()
    assert lake.rows("gross", "net") == [("1.csv", 1, 12, "10"), ("2.csv", 1, 22, "20")]


@pytest.mark.light
def test_avro_with_the_types_of_its_schema_and_a_bad_value(lake):
    nullable = {
        "id": "long",
        "amount": [
            "null",
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        ],
        "day": {"type": "int", "logicalType": "date"},
    }
    day = INSTANT.date()
    lake.external = {"format": "avro"}
    lake.put("1.avro", avro(nullable, (1, Decimal("1.50"), day), (2, None, day)))
    # Texts, which are read as CSV's are; one of them is no number.
    texts = dict.fromkeys(nullable, "string")
    lake.put("2.avro", avro(texts, ("3", "2.5", "2024-03-01"), ("4", "?", "2024-03-01")))
    with pytest.raises(SourceError) as raised:
        lake.ingest()
    assert str(raised.value).startswith(
        f"lake.orders: object s3://{lake.bucket}/orders/2.avro, record 2: column amount: '?' is "
        "not a decimal(9,2). Correct the object or remove it, then run again; or "
    )
    assert lake.rows("id") == []
    lake.put("2.avro", avro(texts, ("3", "2.5", "2024-03-01")))
    assert lake.ingest().rows == 3
    frame = lake.spark.table(lake.relations.source)
    assert frame.dtypes[:3] == [("id", "bigint"), ("amount", "decimal(9,2)"), ("day", "date")]
    assert lake.rows("id", "amount", "day") == [
        ("1.avro", 1, 1, Decimal("1.50"), day),
        ("1.avro", 2, 2, None, day),
        ("2.avro", 1, 3, Decimal("2.50"), date(2024, 3, 1)),
    ]


def test_json_lines_with_exact_numbers_nested_values_and_rejects(lake):
    lake.external = {
        "format": "jsonl",
        "header": ["id", "amount", "at", "items"],
        "header_match": "subset",
        "on_bad_row": "reject",
        "max_rejects": 3,
    }
    lake.columns = [
        {"name": "id", "data_type": "bigint"},
        {"name": "amount", "data_type": "decimal(38,18)"},
        {"name": "at", "data_type": "timestamp"},
        {"name": "items", "data_type": "string"},
    ]
    lines = [
        b'{"id": 9223372036854775807, "amount": 12345678901234567890.123456789012345678, '
        b'"at": "2024-02-29T12:30:00Z", "items": [{"sku": "a", "n": 2}], "source": "web"}',
        b'{"items": [], "at": null, "amount": "0.10", "id": 2}',
        b'{"id": 3, "amount": 1, "items": []}',
        b'{"id": 4.0, "amount": 1, "at": null, "items": []}',
        # Another one beside it is what shows that an hour alone is none.
        b'{"id": 5, "amount": 1, "at": "2024-01-05 10", "items": []}',
        b'{"id": 6, "amount": 1, "at": "10000-01-01 00:00:00.000001000+01", "items": []}',
    ]
    lake.put("1.jsonl", b"\n".join(lines))
    lake.put("2.jsonl.gz", gzip.compress(b'{"id": 5, "amount": 2, "at": null, "items": null}\n'))
    lake.put("3.jsonl", b"")
    report = lake.ingest()
    assert (report.objects, report.rows, report.rejected) == (3, 4, 3)
    assert lake.rows("id", "amount", "items") == [
        (
            "1.jsonl",
            1,
            9223372036854775807,
            Decimal("12345678901234567890.123456789012345678"),
            '[{"sku": "a", "n": 2}]',
        ),
        ("1.jsonl", 2, 2, Decimal("0.1"), "[]"),
        ("1.jsonl", 6, 6, Decimal(1), "[]"),
        ("2.jsonl.gz", 1, 5, Decimal(2), None),
    ]
    frame = lake.spark.table(lake.relations.source)
    items = frame.selectExpr("explode(from_json(items, 'array<struct<sku: string, n: int>>')) i")
    assert [(row.sku, row.n) for row in items.select("i.*").collect()] == [("a", 2)]
    rejects = lake.spark.table(lake.relations.rejects).orderBy("record").collect()
    assert [(row["record"], row["line"], row["column"], row["error"]) for row in rejects] == [
        (3, 3, None, "the record has other keys than the header: 'at' is missing"),
        (4, 4, "id", "column id: 4.0 is not a bigint"),
        (5, 5, "at", "column at: '2024-01-05 10' is not a timestamp"),
    ]
    (far,) = frame.where("id = 6").selectExpr("unix_micros(at)").first()
    assert far == 253_402_300_800_000_001 - 3_600_000_000


@pytest.mark.light
def test_json_lines_with_the_types_of_the_first_record(lake):
    lake.external = {"format": "jsonl"}
    lake.put("1.jsonl", b'{"id": 1, "price": 1.5, "paid": true, "note": null}\n')
    lake.put("2.jsonl", b'{"note": "b", "paid": false, "price": 2, "id": 2}\r\n')
    assert lake.ingest().rows == 2
    frame = lake.spark.table(lake.relations.source)
    types = {"id": "bigint", "price": "double", "paid": "boolean", "note": "string"}
    assert dict(frame.dtypes[:4]) == types
    assert lake.rows(*types) == [
        ("1.jsonl", 1, 1, 1.5, True, None),
        ("2.jsonl", 1, 2, 2.0, False, "b"),
    ]
    lake.put("3.jsonl", b'{"id": 3, "price": 1, "paid": true, "note": "c", "more": {}}\n')
    with pytest.raises(SourceError) as raised:
        lake.ingest()
    assert str(raised.value).startswith(
        f"lake.orders: object s3://{lake.bucket}/orders/3.jsonl, line 1, byte 0: the record has "
        "other keys than the header: 'more' is not one of them. Correct the object or remove it"
    )
