"""The same rows give the same bytes: on one core, on four, on a cluster, in whichever attempt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support import SUPPORT
from support.export.hard_to_order import EXPORTS, OTHERS, ROWS
from support.export.onlooker import without_run_id
from support.s3.faulty import FaultyS3, Request
from support.spark.native import native_parameters
from support.spark.standalone import Cluster, standalone_cluster

from dbt.adapters.mzs3.upload.spec import NOTE_PART, note_of

pytestmark = pytest.mark.spark
SCRIPT = SUPPORT / "export/hard_to_order.py"
ALL = {name: name for name in EXPORTS}
Objects = dict[str, bytes]
RESUMED = "csv/part-0000-0001.csv"
PROPERTIES = {"ContentType": "text/csv; charset=utf-8"}
_PATIENCE_S = 240

ONE_CORE = {
    "spark.master": "local[1]",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.adaptive.enabled": "false",
}
# All that must not make a difference is different.
FOUR_CORES = {
    "spark.master": "local[4]",
    "spark.sql.shuffle.partitions": "7",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "101",
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
    # On by default since Spark 4.3: it moves sorts of a partition's rows.
    "spark.sql.execution.pushDownLocalSort": "false",
}
# A second attempt is begun as soon as a task is seen to take longer than the others.
SPECULATIVE = {
    "spark.sql.shuffle.partitions": "4",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.locality.wait": "0s",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.0",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.speculation.efficiency.enabled": "false",
}
# Of these, part 1 is written by two attempts at once, and in the second set the later one wins.
# (A stage of one task has no speculation, and the other folders leave part 1 empty.)
SPECULATED = {"csv", "gzip", "zstd", "folders", *OTHERS}
LATER_WINS = {"csv", "zstd", "folders"}


def export(
    endpoint: str,
    bucket: str,
    parameters: Mapping[str, str],
    order: str,
    exports: Mapping[str, str] = ALL,
) -> None:
    """Run the exports in a process of their own."""
    argument = {
        "parameters": parameters,
        "order": order,
        "endpoint": endpoint,
        "bucket": bucket,
        "exports": exports,
    }
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, str(SCRIPT), json.dumps(argument)]
    subprocess.run(command, check=True, env=environment)


def exported(s3: Any, bucket: str, folder: str) -> Objects:
    """Every object below the folder; the manifest without the location, and no upload open."""
    assert s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []
    prefix = f"{folder}/"
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    keys = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
    found = {
        key.removeprefix(prefix): s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        for key in keys
    }
    location = f"s3://{bucket}/{folder}".encode()
    found["_manifest.json"] = without_run_id(found["_manifest.json"].replace(location, b""))
    return found


def require_same(s3: Any, bucket: str, expected: Mapping[str, Objects], folders: Any) -> None:
    """All differences at once, by name."""
    different = []
    for folder, name in folders.items():
        found, wanted = exported(s3, bucket, folder), expected[name]
        names = sorted(found.keys() | wanted.keys())
        different += [f"{folder}/{key}" for key in names if found.get(key) != wanted.get(key)]
    assert not different


@pytest.fixture(scope="module")
def expected(s3: Any, s3_endpoint: str) -> dict[str, Objects]:
    """What one core writes, by name of the export."""
    bucket = "deterministic"
    s3.create_bucket(Bucket=bucket)
    export(s3_endpoint, bucket, ONE_CORE, "forward")
    return {name: exported(s3, bucket, name) for name in EXPORTS}


@pytest.mark.slow
def test_what_is_compared_is_the_whole_table_in_several_files(
    expected: dict[str, Objects],
) -> None:
    for name, objects in expected.items():
        manifest = json.loads(objects["_manifest.json"])
        assert manifest["meta"]["record_count"] == ROWS
        if EXPORTS[name].get("max_file_size"):
            assert any("part-0000-0002" in key for key in objects), name
    files = [body for key, body in expected["csv"].items() if key != "_manifest.json"]
    rows = b"".join(body.split(b"\n", 1)[1] for body in files).splitlines()
    assert len(rows) == ROWS
    same = Counter(tuple(row.split(b",")[3:6]) for row in rows if b",same," in row)
    zeros = [(zero, b"{%s}" % element) for zero in (b"0", b"-0") for element in (b"0", b"-0")]
    nans = [(b"NaN", b"{0}"), (b"NaN", b"{-0}")]
    assert same == {
        **{(b"same", *zero): 500 for zero in zeros},
        **{(b"same", *nan): 1000 for nan in nans},
    }


@pytest.mark.slow
def test_four_cores_write_what_one_does_whatever_the_session_and_the_order_of_rows(
    expected: dict[str, Objects], s3: Any, s3_endpoint: str, bucket: str
) -> None:
    export(s3_endpoint, bucket, {**FOUR_CORES, **native_parameters()}, "backward")
    require_same(s3, bucket, expected, ALL)


class Attempts:
    """What befalls the tasks of exports, told by the S3 requests that they make.

    The first attempt at part 0 is refused. Part 1 of those in SPECULATED waits: the attempt that
    is to win for the other one's upload, and that one for the manifest. The executors die when
    the first upload part below `killed` comes.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self.refused: set[str] = set()
        self._uploads: defaultdict[str, list[str]] = defaultdict(list)
        self._events: defaultdict[str, threading.Event] = defaultdict(threading.Event)
        self.killed = 0
        self.late: list[str] = []

    def deny(self, request: Request) -> bool:
        folder = _folder(request)
        starts = any(name in request.key for name in ("part-0000-0001", "all.csv"))
        if request.action != "UploadPart" or folder == "killed" or not starts:
            return False
        with self._lock:
            refused = folder in self.refused
            self.refused.add(folder)
        return not refused

    def watch(self, request: Request) -> None:
        folder = _folder(request)
        if request.action == "PutObject" and request.key.endswith("_manifest.json"):
            self._event(folder).set()
        if request.action != "UploadPart":
            return
        if folder == "killed":
            with self._lock:
                if not self.killed:
                    self.killed = self._cluster.kill_executors()
        elif folder in SPECULATED and "part-0001-0001" in request.key:
            self._race(request, folder)

    def _race(self, request: Request, folder: str) -> None:
        (upload,) = request.query["uploadId"]
        with self._lock:
            uploads = self._uploads[request.key]
            if upload not in uploads:
                uploads.append(upload)
            is_first, are_two = upload == uploads[0], len(uploads) > 1
        if are_two:
            self._event(request.key).set()
        wins = is_first != (folder in LATER_WINS)
        # The later attempt, if it is to win, has the other one beside it already.
        if not self._event(request.key if wins else folder).wait(_PATIENCE_S):
            self.late.append(request.key)

    def _event(self, name: str) -> threading.Event:
        with self._lock:
            return self._events[name]


def _folder(request: Request) -> str:
    return request.key.split("/")[2] if request.key.count("/") > 1 else ""


@pytest.mark.long
def test_a_cluster_whose_tasks_fail_race_and_die_writes_what_one_core_does(
    expected: dict[str, Objects],
    s3: Any,
    faulty: FaultyS3,
    bucket: str,
    tmp_path: Path,
) -> None:
    folders = {**ALL, "killed": "gzip"}
    # One that an interrupted run left open, for two attempts to continue.
    left = s3.create_multipart_upload(Bucket=bucket, Key=RESUMED, **PROPERTIES)
    part = {"UploadId": left["UploadId"], "PartNumber": NOTE_PART, "Body": note_of(PROPERTIES)}
    s3.upload_part(Bucket=bucket, Key=RESUMED, **part)
    with standalone_cluster(tmp_path) as cluster:
        attempts = Attempts(cluster)
        faulty.watch, faulty.deny = attempts.watch, attempts.deny
        parameters = {**SPECULATIVE, "spark.master": cluster.master}
        export(faulty.endpoint, bucket, parameters, "backward", folders)
    require_same(s3, bucket, expected, folders)

    opened = Counter(r.key for r in faulty.seen if r.action == "CreateMultipartUpload")
    assert f"/{bucket}/{RESUMED}" not in opened

    def opened_twice(folder: str, part: str) -> bool:
        keys = [key for key in opened if key.startswith(f"/{bucket}/{folder}/") and part in key]
        return any(opened[key] > 1 for key in keys)

    assert attempts.refused == EXPORTS.keys()
    for name in EXPORTS.keys() - {"csv"}:
        assert opened_twice(name, "all.csv" if name == "single" else "part-0000-"), name
    assert {name for name in SPECULATED if opened_twice(name, "part-0001-")} == SPECULATED
    assert attempts.killed == 2
    assert opened_twice("killed", "part-")
    assert attempts.late == []
