"""An executor dies while files are written: no row is lost, and none is there twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from support import SUPPORT
from support.s3.faulty import FaultyS3, Request
from support.spark.export_on_cluster import GROUPS
from support.spark.native import IS_NATIVE, native, native_parameters
from support.spark.standalone import executors_below

from dbt.adapters.mzs3.events import CopyEvent
from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.export.monitor import RunContext

pytestmark = pytest.mark.spark

SCRIPT = SUPPORT / "spark/export_on_cluster.py"
DIFF_SCRIPT = SUPPORT / "spark/diff_on_cluster.py"
CHECKSUMS = "spark.sql.shuffle.orderIndependentChecksum"
# What a user may set; in vain.
UNCHECKED = {
    f"{CHECKSUMS}.enabled": "false",
    f"{CHECKSUMS}.enableFullRetryOnMismatch": "false",
}
_OPEN = 4


class Killer:
    """Kills one executor in the midst of each attempt, so many times.

    Of the uploads that are opened once more, one or two are of tasks that died with it.
    """

    def __init__(self, times: int) -> None:
        self._times = times
        self._lock = threading.Lock()
        self._opened: Counter[str] = Counter()
        self.driver = 0
        self.kills = 0

    def watch(self, request: Request) -> None:
        if request.action != "CreateMultipartUpload" or "/part-" not in request.key:
            return
        with self._lock:
            self._opened[request.key] += 1
            attempt = self.kills + 1
            now = sum(1 for times in self._opened.values() if times >= attempt)
            if now >= _OPEN - self.kills and self.kills < self._times:
                self.kills += 1
                os.kill(executors_below(self.driver)[0], signal.SIGKILL)


def run(
    killer: Killer,
    faulty: FaultyS3,
    location: str,
    what: str,
    *,
    compared: bool = True,
    script: Path = SCRIPT,
    parameters: Mapping[str, str] = UNCHECKED,
) -> tuple[int, str]:
    """The exit code and the output."""
    argument = {
        "parameters": {**native_parameters(), **parameters},
        "endpoint": faulty.endpoint,
        "location": location,
        "what": what,
        "compared": compared,
    }
    spark = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    process = subprocess.Popen(
        [sys.executable, str(script), json.dumps(argument)],
        env={**os.environ, **spark},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    killer.driver = process.pid
    faulty.watch = killer.watch
    try:
        output, _ = process.communicate(timeout=500)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, output


def groups(s3: Any, bucket: str) -> Counter[int]:
    """How many rows each group has in the objects of an export."""
    keys = [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    files = [key for key in keys if "/part-" in key]
    bodies = [s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode() for key in files]
    return Counter(int(line.split(",")[0]) for body in bodies for line in body.splitlines())


def open_uploads(s3: Any, bucket: str) -> list[str]:
    found = s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
    return [upload["Key"] for upload in found]


@pytest.mark.long
@pytest.mark.parametrize("compared", [True, False])
def test_an_export_has_each_row_once(
    compared: bool, faulty: FaultyS3, s3: Any, bucket: str
) -> None:
    killer = Killer(1)
    code, output = run(killer, faulty, f"s3://{bucket}/x", "export", compared=compared)
    assert (killer.kills, code) == (1, 0), output
    there = groups(s3, bucket)
    assert (len(there), there.total()) == (GROUPS, GROUPS)
    assert output.count("begins again, as Spark lost rows") == 1
    assert ("Comet has sent its rows" in output) is IS_NATIVE
    assert open_uploads(s3, bucket) == []


@native
@pytest.mark.long
def test_an_export_whose_batches_comet_does_not_send_has_each_row_once(
    faulty: FaultyS3, s3: Any, bucket: str
) -> None:
    """Its shuffle is Spark's, which compares rows."""
    killer, unsent = Killer(1), {"spark.comet.exec.pyarrowUDF.enabled": "false"}
    code, output = run(killer, faulty, f"s3://{bucket}/x", "export", parameters=unsent)
    assert (killer.kills, code) == (1, 0), output
    there = groups(s3, bucket)
    assert (len(there), there.total()) == (GROUPS, GROUPS)
    assert "not native" not in output and "was native" not in output


@pytest.mark.long
@pytest.mark.parametrize("compared", [True, False])
def test_an_export_that_loses_executors_twice_fails_and_leaves_nothing(
    compared: bool, faulty: FaultyS3, bucket: str, nothing_left: Callable[[str], None]
) -> None:
    killer = Killer(2)
    code, output = run(killer, faulty, f"s3://{bucket}/x", "export", compared=compared)
    assert (killer.kills, code) == (2, 1), output
    assert "so it was when all was begun again, too" in output
    assert "Nothing of this export is visible, and no upload is left open" in output
    nothing_left(bucket)


@pytest.mark.long
@pytest.mark.parametrize("compared", [True, False])
def test_a_shard_has_each_row_once(compared: bool, faulty: FaultyS3, s3: Any, bucket: str) -> None:
    killer = Killer(1)
    code, output = run(killer, faulty, f"s3://{bucket}/x", "shard", compared=compared)
    assert (killer.kills, code) == (1, 0), output
    assert f"{GROUPS} rows of {GROUPS} groups" in output
    assert open_uploads(s3, bucket) == []


@pytest.mark.long
@pytest.mark.parametrize("compared", [True, False])
def test_a_diff_of_unknown_size_has_each_row_once(
    compared: bool, faulty: FaultyS3, s3: Any, bucket: str
) -> None:
    killer = Killer(1)
    where = f"s3://{bucket}/x"
    code, output = run(killer, faulty, where, "shard", compared=compared, script=DIFF_SCRIPT)
    assert (killer.kills, code) == (1, 0), output
    assert f"{GROUPS} rows of {GROUPS} groups" in output
    assert open_uploads(s3, bucket) == []


def test_rows_that_are_computed_anew_make_an_export_begin_again(
    copy: Callable[..., CopyResult],
    faulty: FaultyS3,
    spark_parameters: dict[str, str],
    s3: Any,
    bucket: str,
) -> None:
    told: list[CopyEvent] = []
    lost: list[Path] = []

    def lose(request: Request) -> None:
        """What Spark has put into the shuffle is gone once a file of its rows is begun."""
        if request.action == "CreateMultipartUpload" and "part-0003" in request.key and not lost:
            lost.extend(Path(spark_parameters["spark.local.dir"]).rglob("shuffle_*"))
            for file in lost:
                file.unlink(missing_ok=True)

    faulty.watch = lose
    location = f"s3://{bucket}/x"
    context = RunContext(tell=told.append)
    result = copy("select id from range(1000)", location, parts=8, context=context)
    assert lost
    assert result.rows == 1000
    again = [event for event in told if event.name == "mzs3.copy.begins_again"]
    assert [event.fields["reason"] for event in again] == ["rows computed anew"]
    assert groups(s3, bucket) == Counter(range(1000))
    assert open_uploads(s3, bucket) == []
