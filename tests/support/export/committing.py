"""A run that has uploaded its files, and commits them to an S3 in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql import types as T

from dbt.adapters.mzs3.export.commit.intent import PendingExport, put_intent, read_intent
from dbt.adapters.mzs3.export.commit.preflight import Preflight, prepare
from dbt.adapters.mzs3.export.commit.protocol import Commit
from dbt.adapters.mzs3.export.export import Export
from dbt.adapters.mzs3.export.options import CopyOptions, OnExisting
from dbt.adapters.mzs3.formats.write import FORMATS
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.upload.pending import PendingFile
from support.s3.memory import MemoryS3, failure
from support.s3.opened import prefix_of

LOCATION = S3Location("b", "x/")
FILES = [f"x/part-000{part}-0001.csv" for part in range(3)]
EXPORT = ["x/_manifest.json", *FILES]


def export_of(
    bucket: str, key: str, options: CopyOptions, schema: T.StructType | None = None
) -> Export:
    """What is fixed for an export that nobody runs, of the model `model.p.m`."""
    schema, connection = schema or T.StructType(), AwsConnection()
    return Export("model.p.m", schema, options, S3Location(bucket, key), connection, 7, False)


def prefix(s3: MemoryS3) -> Prefix:
    client: Any = s3
    return prefix_of(client, LOCATION)


def prepared(s3: MemoryS3, mode: OnExisting, single_file: str | None = None) -> Preflight:
    """What a run finds that has looked at the location, with these options."""
    text = FORMATS["csv"]()
    options = CopyOptions(LOCATION.uri, format=text, single_file=single_file, on_existing=mode)
    return prepare(prefix(s3), options)


def export(s3: MemoryS3, name: str, keys: list[str] = FILES) -> tuple[Commit, list[PendingFile]]:
    """A run that has uploaded its files and goes on to commit them."""
    opened = [s3.opened(key, upload_id=f"{name} {key}") for key in keys]
    files = [replace(file, sha256=f"{name} {file.key}") for file in opened]
    entries = [{"url": f"s3://b/{f.key}", "meta": {"run_id": name}} for f in files]
    manifest = {"of": name, "run_id": name, "entries": entries, "meta": {"record_count": 15}}
    return Commit(
        prefix(s3), PendingExport(tuple(files), manifest), has_conditional_deletes=True
    ), files


def run(commit: Commit) -> None:
    """Commit from the claim to the freed location."""
    with commit:
        commit.claim()
        commit.complete()
        commit.finish()
    commit.release()


def decide_back(s3: MemoryS3, *, shared: bool = False) -> None:
    """Another run decides that the commit under way goes back, and then it dies."""
    found = read_intent(prefix(s3))
    assert found is not None
    back = replace(found.intent, state="back", written_by="other", shared=shared)
    put_intent(prefix(s3), back, found)


def once(s3: MemoryS3, action: str, key: str, then: Any) -> None:
    """Do something right before the first such request."""

    def before(found: str, at: str) -> None:
        if (found, at) == (action, key):
            s3.before = lambda *_: None
            then()

    s3.before = before


def refuse(code: str) -> Any:
    def answer() -> None:
        raise failure(code)

    return answer
