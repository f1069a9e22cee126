"""The manifest: Redshift's keys, ordered files, the same bytes for the same export."""

from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

from pyspark.sql import types as T
from support.export.committing import export_of

from dbt.adapters.mzs3.export.commit.manifest import to_json
from dbt.adapters.mzs3.export.export import build_manifest
from dbt.adapters.mzs3.upload.pending import PendingFile

SCHEMA = T.StructType(
    [
        T.StructField("id", T.LongType()),
        T.StructField("amount", T.DecimalType(12, 2)),
        T.StructField("names", T.ArrayType(T.StringType())),
        T.StructField("at", T.TimestampType()),
    ]
)


def file(part: int, number: int, rows: int, size: int) -> PendingFile:
    key = f"x/part-{part:04d}-{number:04d}.csv"
    return PendingFile(part, number, key, "id", ("etag",), rows, size, f"sum of {key}")


def manifest(*files: PendingFile) -> dict[str, Any]:
    options: Any = SimpleNamespace(as_config=lambda: {"parts": 2})
    return build_manifest(export_of("b", "x/", options, SCHEMA), files, "r")


def test_entries_are_what_redshift_reads_in_order_of_their_names() -> None:
    entries = manifest(file(1, 1, 1, 10), file(0, 2, 2, 20), file(0, 1, 3, 30))["entries"]
    assert [entry["url"] for entry in entries] == [
        "s3://b/x/part-0000-0001.csv",
        "s3://b/x/part-0000-0002.csv",
        "s3://b/x/part-0001-0001.csv",
    ]
    assert entries[0] == {
        "url": "s3://b/x/part-0000-0001.csv",
        "mandatory": True,
        "meta": {
            "content_length": 30,
            "record_count": 3,
            "sha256": "sum of x/part-0000-0001.csv",
            "run_id": "r",
        },
    }


def test_totals_types_and_provenance() -> None:
    written = manifest(file(0, 1, 3, 30), file(1, 1, 1, 10))
    assert written["meta"] == {"content_length": 40, "record_count": 4}
    assert [element["type"] for element in written["schema"]["elements"]] == [
        {"base": "bigint"},
        {"base": "numeric", "precision": 12, "scale": 2},
        {"base": "character varying"},
        {"base": "timestamp with time zone"},
    ]
    assert (written["model"], written["as_of"], written["options"]) == (
        "model.p.m",
        7,
        {"parts": 2},
    )
    assert written["author"]["name"] == "dbt-mzs3"


def test_the_same_export_gives_the_same_bytes() -> None:
    one, two = file(0, 1, 3, 30), file(1, 1, 1, 10)
    assert to_json(manifest(one, two)) == to_json(manifest(two, one))


def test_a_pending_file_reads_back_from_json_values() -> None:
    pending = file(0, 1, 3, 30)
    assert PendingFile.from_dict(asdict(pending)) == pending
