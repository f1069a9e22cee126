"""What single objects may hold, and what each comes to: rows, or an error that says where."""

from __future__ import annotations

import gzip
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from moto.s3.models import s3_backends
from support.s3.real_stores import STORE

from dbt.adapters.mzs3.errors import Mzs3Error, SourceError
from dbt.adapters.mzs3.export.commit.intent import COMMITTING
from dbt.adapters.mzs3.export.commit.manifest import MANIFEST

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[3] / "docs" / "s3-csv-source.md"

PLAIN = [("1", "a"), ("2", "b")]
GOOD = {
    "plain.csv": ("id,note\n1,a\n2,b\n", PLAIN),
    "no final newline.csv": ("id,note\n1,a\n2,b", PLAIN),
    "CRLF.csv": ("id,note\r\n1,a\r\n2,b\r\n", PLAIN),
    "byte order mark.csv": ("\ufeffid,note\n1,a\n2,b\n", PLAIN),
    "quoted newlines.csv": (
        'id,note\n1,"a\nb"\n"2","c\r\n"\n',
        [("1", "a\nb"), ("2", "c\r\n")],
    ),
    "quotes, empty, NULL.csv": (
        'id,note\n1,"say ""a"""\n2,""\n3,\n',
        [("1", 'say "a"'), ("2", ""), ("3", None)],
    ),
    "header only.csv": ("id,note\n", []),
    "header only, no newline.csv": ("id,note", []),
    "empty.csv": ("", []),
    "a b/é+%25&=?#.csv": ("id,note\n1,a\n2,b\n", PLAIN),
    "gzip.csv.gz": (gzip.compress(b"id,note\n1,a\n2,b\n"), PLAIN),
}


@pytest.fixture(scope="module")
def good(new_lake):
    lake = new_lake()
    # The first in the listing is empty, and has no header to pin.
    lake.put("!empty.csv", "")
    for name, (content, _) in GOOD.items():
        lake.put(name, content)
    lake.external = {"pattern": "**/*.{csv,csv.gz}"}
    lake.put("other.txt", "not CSV")
    report = lake.ingest()
    return report, lake.rows("id", "note"), lake.states()


@pytest.mark.parametrize("name", GOOD)
def test_an_object_gives_exactly_these_rows(good, name):
    _, rows, states = good
    expected = GOOD[name][1]
    numbered = [(name, number, *values) for number, values in enumerate(expected, 1)]
    assert [row for row in rows if row[0] == name] == numbered
    assert states[name] == ("fetched", len(expected), None)


def test_one_run_takes_all_matching_objects_and_reports_them(good):
    report, rows, states = good
    assert (report.objects, report.rows, report.rejected) == (len(GOOD) + 1, len(rows), 0)
    assert set(states) == {"!empty.csv", *GOOD}


@pytest.mark.light
def test_what_an_export_left_is_read_back_by_default(lake):
    for folder in ("", "2024/"):
        lake.put(f"{folder}part-0000-0001.csv", "id\n1\n")
        lake.put(folder + MANIFEST, '{"files": []}')
        lake.put(folder + COMMITTING, '{"files": []}')
    assert lake.ingest().objects == 2
    assert lake.rows("id") == [
        ("2024/part-0000-0001.csv", 1, "1"),
        ("part-0000-0001.csv", 1, "1"),
    ]


@pytest.fixture(scope="module")
def committed(new_lake):
    lake = new_lake()
    lake.put("1.csv", "id,note\n1,a\n2,b\n")
    lake.ingest()
    return lake


@pytest.mark.light
@pytest.mark.parametrize(
    ("content", "where", "what"),
    [
        pytest.param("note,id\na,1\n", "line 1, byte 0", "column 1", id="header differs"),
        pytest.param("1,a\n2,b\n", "line 1, byte 0", "column 1", id="no header"),
        pytest.param("id,note\n1,a\n2,b,c\n", "line 3, byte 12", "3", id="too many fields"),
        pytest.param('id,note\n1,"a\nb"\n2\n', "line 4, byte 16", "1", id="too few fields"),
    ],
)
def test_an_object_in_error_is_named_with_line_and_byte(committed, content, where, what):
    committed.put("2.csv", content)
    committed.put("3.csv", "id,note\n3,c\n")
    with pytest.raises(SourceError) as raised:
        committed.ingest()
    text, _, way_out = str(raised.value).partition("; or go on without it after: ")
    assert "skip_s3_objects" in way_out
    assert f"lake.orders: object s3://{committed.bucket}/orders/2.csv, {where}: " in text
    assert what in text
    assert "Traceback" not in text
    assert committed.rows("id", "note") == [("1.csv", 1, "1", "a"), ("1.csv", 2, "2", "b")]
    assert committed.states() == {
        "1.csv": ("fetched", 2, None),
        "2.csv": ("failed", None, text),
        "3.csv": ("listed", None, None),
    }


def test_columns_alias_the_header_and_type_the_rows(lake):
    lake.columns = [
        {"name": "order_id", "data_type": "bigint"},
        {"name": "total", "data_type": "decimal(12,2)"},
    ]
    lake.put("1.csv", "id,AMOUNT\n1,2.50\n")
    lake.ingest()
    frame = lake.spark.table(lake.relations.source)
    assert frame.dtypes == [
        ("order_id", "bigint"),
        ("total", "decimal(12,2)"),
        ("_mz_object", "string"),
        ("_mz_record", "bigint"),
        ("_mz_last_modified", "timestamp"),
    ]
    assert [(row["order_id"], str(row["total"])) for row in frame.collect()] == [(1, "2.50")]


@pytest.mark.skipif(STORE is not None, reason="only moto can be told when an object was modified")
def test_a_query_orders_records_across_objects(lake):
    first = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    days = {"z.csv": 0, "b.csv": 1, "c.csv": 1, "a.csv": 2}
    stored = s3_backends["123456789012"]["aws"].buckets[lake.bucket].keys
    for number, (name, day) in enumerate(days.items()):
        lake.put(name, f"id\n{2 * number}\n{2 * number + 1}\n")
        stored[f"orders/{name}"].last_modified = first + timedelta(days=day)
    lake.ingest()
    [query] = re.findall(r"select \* from raw\.orders order by .*", PAGE.read_text())
    found = lake.spark.sql(query.replace("raw.orders", lake.relations.source)).collect()
    assert [row["id"] for row in found] == [str(number) for number in range(8)]


@pytest.mark.light
def test_names_from_a_header_are_only_ever_names(lake):
    names = ["a`b", "x.y", "${spark.app.name}", "it's", "1; drop", "c\\d", "sp ace"]
    names += [f"a_rather_long_name_of_a_column_{i}" for i in range(1000)]
    lake.put("1.csv", ",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    assert lake.ingest().rows == 1
    lake.put("2.csv", ",".join(names) + "\n" + ",".join("2" for _ in names) + "\n")
    assert lake.ingest().rows == 1
    assert lake.spark.table(lake.relations.source).columns[: len(names)] == names


def test_a_source_needs_an_object_to_learn_its_header(lake):
    lake.put("0.csv", "")
    with pytest.raises(SourceError, match=r"lake.orders: no object .* Put one there"):
        lake.ingest()
    lake.put("1.csv", "id\n1\n")
    assert lake.ingest().rows == 1


@pytest.mark.parametrize(
    "external", [{"header": ["id", "note"]}, {"header": False, "column_count": 2}]
)
def test_a_source_that_knows_its_columns_may_be_empty(lake, external):
    lake.external = external
    report = lake.ingest()
    assert (report.objects, report.rows) == (0, 0)
    assert lake.rows() == []


def test_a_missing_bucket_is_one_clear_error(lake):
    lake.bucket = "no-such-bucket"
    lake.external = {"header": ["id"]}
    with pytest.raises(Mzs3Error, match="listing s3://no-such-bucket/orders/ failed") as raised:
        lake.ingest()
    assert "Traceback" not in str(raised.value)
