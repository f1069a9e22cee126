"""An export by the real spark-submit: as in a session, and cancelled without a trace."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.s3.faulty import FaultyS3, Request, connection_to
from support.s3.real_stores import objects_in

from dbt.adapters.mzs3.compiled_job import render_copy_job
from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.events import CopyEvent
from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.spark.job import Call
from dbt.adapters.mzs3.submit.driver import run_submitted
from dbt.adapters.mzs3.submit.messages import SessionSettings
from dbt.adapters.mzs3.submit.options import SubmitOptions
from dbt.adapters.mzs3.submit.process import Submission, SubmitPlan

pytestmark = pytest.mark.spark

QUERY = "select id, repeat('x', 1000) as filler, cast(id as double) / 3 as third from range(9000)"
OPTIONS = {"parts": 2, "part_size": "5MB"}
AS_OF = 1700000000000


@pytest.fixture
def plan(spark_parameters: dict[str, str], tmp_path: Path) -> SubmitPlan:
    own = {
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
    }
    options = SubmitOptions(conf={**spark_parameters, **own})
    return SubmitPlan(options, settings={}, session=SessionSettings({}, 0))


def export(location: str, endpoint: str) -> Call[CopyResult]:
    code = render_copy_job(
        "model.test.export",
        QUERY,
        {"location": location, **OPTIONS},
        schema="default",
        identifier="e",
    )
    arguments = {
        "code": code,
        "name": "export.sql",
        "secrets": (),
        "aws_connections": {"default": connection_to(endpoint)},
        "as_of": AS_OF,
        "invocation_id": "of-this-test",
    }
    return Call(run_submitted, arguments, takes=("cancelled", "tell"))


def sums(s3: Any, bucket: str, folder: str) -> list[str]:
    body = s3.get_object(Bucket=bucket, Key=f"{folder}/_manifest.json")["Body"].read()
    return [entry["meta"]["sha256"] for entry in json.loads(body)["entries"]]


@pytest.mark.slow
def test_an_export_that_is_submitted_has_the_bytes_of_one_in_a_session(
    plan: SubmitPlan, copy: Callable[..., CopyResult], faulty: FaultyS3, bucket: str, s3: Any
) -> None:
    here = copy(QUERY, f"s3://{bucket}/here", **OPTIONS)
    told: list[CopyEvent] = []
    with Submission(plan) as job:
        work = export(f"s3://{bucket}/there", faulty.endpoint)
        there = job.run(work, threading.Event(), told.append, subject="model.test.export")

    at_home = {"location": here.location, "manifest": here.manifest}
    assert replace(there, **at_home) == here
    assert sums(s3, bucket, "there") == sums(s3, bucket, "here")
    names = [event.name for event in told if event.name != "mzs3.copy.progress"]
    assert names == ["mzs3.copy.started", "mzs3.copy.committed"]


@pytest.mark.light
def test_a_submitted_export_that_is_cancelled_leaves_nothing(
    plan: SubmitPlan, faulty: FaultyS3, bucket: str, s3: Any
) -> None:
    cancelled, aborted = threading.Event(), threading.Event()

    def hold(request: Request) -> None:
        """No part comes through before the export gives up."""
        if request.action == "UploadPart":
            cancelled.set()
            aborted.wait(60)
        elif request.action == "AbortMultipartUpload" and cancelled.is_set():
            aborted.set()

    faulty.watch = hold
    with Submission(plan) as job, pytest.raises(Mzs3Error) as caught:
        work = export(f"s3://{bucket}/there", faulty.endpoint)
        job.run(work, cancelled, lambda _: None, subject="model.test.export")

    assert "was cancelled. Nothing of this export is visible, and no upload is" in str(
        caught.value
    )
    assert objects_in(s3, bucket) == {}
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)
