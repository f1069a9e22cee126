import json
from collections import Counter

import boto3
import demo_exports
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from moto import mock_aws

CONTENT = b"day,flights\n2013-01-01,842\n2013-01-02,943\n"


@pytest.fixture
def client():
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="acme-exports")
        yield client


def put_export(client, *, content=CONTENT, listed_rows=2, reported_rows=2, folder):
    entry = {
        "url": "s3://acme-exports/daily/part-0000-0001.csv",
        "meta": {"record_count": listed_rows, "content_length": len(CONTENT)},
    }
    manifest = {"entries": [entry], "options": {"header": True}}
    client.put_object(Bucket="acme-exports", Key="daily/part-0000-0001.csv", Body=content)
    client.put_object(
        Bucket="acme-exports", Key="daily/_manifest.json", Body=json.dumps(manifest).encode()
    )
    response = {
        "code": "COPY",
        "rows_affected": reported_rows,
        "location": "s3://acme-exports/daily/",
        "manifest": "s3://acme-exports/daily/_manifest.json",
    }
    results = [
        {"unique_id": "model.flights.daily_export", "adapter_response": response},
        {"unique_id": "model.flights.daily", "adapter_response": {}},
    ]
    run_results = folder / "run_results.json"
    run_results.write_text(json.dumps({"results": results}))
    return run_results


def test_an_export_is_read_and_downloaded(client, tmp_path):
    run_results = put_export(client, folder=tmp_path)
    (export,) = demo_exports.read_exports(client, run_results, tmp_path / "exports")
    assert (export.name, export.rows, export.location) == (
        "daily_export",
        2,
        "s3://acme-exports/daily/",
    )
    (file,) = export.files
    assert file.path.read_bytes() == CONTENT
    assert (tmp_path / "exports" / "daily_export" / "_manifest.json").exists()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"content": CONTENT + b"2013-01-03,1\n"}, "part-0000-0001.csv has 3 rows"),
        ({"content": CONTENT.replace(b"842", b"8")}, "part-0000-0001.csv has 2 rows and 40 bytes"),
        ({"reported_rows": 3}, "dbt reports 3 rows, the objects hold 2"),
    ],
)
def test_disagreement_is_a_failure(client, tmp_path, wrong, message):
    run_results = put_export(client, folder=tmp_path, **wrong)
    with pytest.raises(demo_exports.DemoFailed, match=message):
        demo_exports.read_exports(client, run_results, tmp_path / "exports")


def export_of(path, *rows):
    path.write_text("".join(f"{row}\n" for row in rows))
    file = demo_exports.ExportedFile("s3://b/f.csv", len(rows), path)
    return demo_exports.Export("flights_export", len(rows), "s3://b/", [file])


def test_the_same_rows_in_another_order_are_the_same(tmp_path):
    expected = Counter({("a", "1"): 2, ("b", ""): 1})
    demo_exports.require_rows(export_of(tmp_path / "f.csv", "b,", "a,1", "a,1"), expected)


@pytest.mark.parametrize(
    "rows", [["a,1", "b,"], ["a,1", "a,1", "b,2"], ["a,1", "a,1", "b,", "c,"]]
)
def test_any_other_rows_fail_the_demo(tmp_path, rows):
    expected = Counter({("a", "1"): 2, ("b", ""): 1})
    with pytest.raises(demo_exports.DemoFailed, match=r"rows are missing|are not those"):
        demo_exports.require_rows(export_of(tmp_path / "f.csv", *rows), expected)


@pytest.mark.parametrize(
    ("rows", "good"),
    [
        ([(1, 2, 10, 30)], True),
        ([(2, 2, 10, 30)], False),
        ([(1, 2, 30, 30)], False),
        ([(0, 2, 0, 30)], False),
        ([], False),
        ([(1, 2, 10, 30)] * 2, False),
    ],
)
def test_growth_is_of_planes_and_flights(tmp_path, rows, good):
    names = ("planes_then", "planes_now", "flights_then", "flights_now")
    schema = pa.schema([(name, pa.int64()) for name in names])
    table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema)
    folder = tmp_path / "analytics.db" / "fleet_growth"
    folder.mkdir(parents=True)
    pq.write_table(table, folder / "part-0.parquet")
    if good:
        demo_exports.require_growth(tmp_path)
    else:
        with pytest.raises(demo_exports.DemoFailed, match="fleet_growth should have one row"):
            demo_exports.require_growth(tmp_path)
