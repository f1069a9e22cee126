"""What `dbt build` exported: read from its results, compared with the objects in S3."""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class DemoFailed(Exception):
    """Something that must hold after the demo does not."""


@dataclass(frozen=True)
class ExportedFile:
    """One object of an export, as its manifest has it and as it was downloaded."""

    url: str
    rows: int
    path: Path


@dataclass(frozen=True)
class Export:
    """One COPY node of the run; `rows` is what dbt reported."""

    name: str
    rows: int
    location: str
    files: list[ExportedFile]


def read_exports(client: S3Client, run_results: Path, folder: Path) -> list[Export]:
    """Every export of the run, its objects downloaded into a folder of its name.

    Raises DemoFailed where dbt's results, the manifest and the objects disagree on rows or bytes.
    """
    results = json.loads(run_results.read_text())["results"]
    copied = [
        result
        for result in results
        if str(result["adapter_response"].get("manifest")).endswith("/_manifest.json")
    ]
    return [_read_export(client, result, folder) for result in copied]


def as_of_shard(run_results: Path, model: str) -> int:
    """The time, in ms since the epoch, of what a run wrote to a model's shard."""
    for result in json.loads(run_results.read_text())["results"]:
        if str(result["unique_id"]).endswith(f".{model}"):
            return int(result["adapter_response"]["as_of"])
    raise DemoFailed(f"{model} was not run")


def require_growth(warehouse: Path) -> None:
    """Raises DemoFailed unless `fleet_growth` has one row, with more planes and flights now."""
    found = [
        row
        for folder in warehouse.glob("*/fleet_growth")
        for row in pq.read_table(folder).to_pylist()
    ]
    grew = [
        0 < row["planes_then"] < row["planes_now"] and 0 < row["flights_then"] < row["flights_now"]
        for row in found
    ]
    if grew != [True]:
        raise DemoFailed(f"fleet_growth should have one row, with more of everything now: {found}")


def require_rows(export: Export, expected: Counter[tuple[str, ...]]) -> None:
    """Raises DemoFailed unless the files of an export hold exactly these rows, in any order."""
    found: Counter[tuple[str, ...]] = Counter()
    for file in export.files:
        with file.path.open(encoding="utf-8", newline="") as lines:
            found.update(tuple(row) for row in csv.reader(lines))
    if found != expected:
        missing, extra = expected - found, found - expected
        raise DemoFailed(
            f"{export.name}: {missing.total()} rows are missing and {extra.total()} are not those "
            f"that were loaded, such as {next(iter(missing or extra))}"
        )


def _read_export(client: S3Client, result: dict[str, object], folder: Path) -> Export:
    name = str(result["unique_id"]).split(".")[-1]
    response = result["adapter_response"]
    assert isinstance(response, dict)
    manifest = json.loads(_download(client, response["manifest"], folder / name))
    header = bool(manifest["options"]["header"])
    files = []
    for entry in manifest["entries"]:
        content = _download(client, entry["url"], folder / name)
        rows = content.count(b"\n") - header
        listed = entry["meta"]
        if (rows, len(content)) != (listed["record_count"], listed["content_length"]):
            raise DemoFailed(
                f"{entry['url']} has {rows} rows and {len(content)} bytes, which its manifest "
                f"gives as {listed['record_count']} and {listed['content_length']}"
            )
        files.append(ExportedFile(entry["url"], rows, folder / name / _file_name(entry["url"])))
    total = sum(file.rows for file in files)
    if total != response["rows_affected"]:
        raise DemoFailed(
            f"{name}: dbt reports {response['rows_affected']} rows, the objects hold {total}"
        )
    return Export(name, total, response["location"], files)


def _download(client: S3Client, url: str, folder: Path) -> bytes:
    bucket, _, key = url.removeprefix("s3://").partition("/")
    content = client.get_object(Bucket=bucket, Key=key)["Body"].read()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _file_name(url)).write_bytes(content)
    return content


def _file_name(url: str) -> str:
    return url.rpartition("/")[2]
