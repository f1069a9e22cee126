"""Progress while a COPY runs, and its events in dbt's structured log."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from dbt.tests.util import run_dbt_and_capture
from support.s3.faulty import FaultyS3, Request, connection_to

from dbt.adapters.mzs3.events import CopyEvent
from dbt.adapters.mzs3.export import progress
from dbt.adapters.mzs3.export.job import copy_to_s3
from dbt.adapters.mzs3.export.monitor import RunContext

pytestmark = pytest.mark.spark
WAIT_S = 60
PROGRESS = "mzs3.copy.progress"

EXPORT = """
{{ config(materialized='copy_to_s3', location='s3://copy-progress/orders/', parts=2) }}
select id, concat('order ', id) as name from range(100)
"""


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress is told many times in the shortest export."""
    monkeypatch.setattr(progress, "EVERY_S", 0.01)


@pytest.mark.usefixtures("often")
def test_parts_rows_and_bytes_arrive_while_files_are_written(
    spark: Any, faulty: FaultyS3, bucket: str
) -> None:
    seen: list[CopyEvent] = []
    heard = threading.Event()

    def tell(event: CopyEvent) -> None:
        seen.append(event)
        if event.name == PROGRESS and event.fields["rows"] == 1000:
            heard.set()

    def hold_uploads(request: Request) -> None:
        if request.action == "UploadPart":
            assert heard.wait(WAIT_S)

    faulty.watch = hold_uploads
    copy_to_s3(
        spark,
        "select id from range(1000)",
        node="model.test.export",
        options={"location": f"s3://{bucket}/x", "parts": 1},
        connections={"default": connection_to(faulty.endpoint)},
        as_of=1,
        context=RunContext(identifier="export", tell=tell),
    )
    assert heard.is_set()
    told = [event.fields for event in seen if event.name == PROGRESS]
    assert told[0]["phase"] == "computing"
    assert {fields["location"] for fields in told} == {f"s3://{bucket}/x/"}
    [first, *_] = [fields for fields in told if fields["rows"] == 1000]
    assert (first["parts"], first["bytes"]) == (1, sum(len(f"{i}\n") for i in range(1000)))
    assert [seen[0].name, seen[-1].name] == ["mzs3.copy.started", "mzs3.copy.committed"]
    assert not any("(progress)" in thread.name for thread in threading.enumerate())


class TestStructuredLog:
    @pytest.fixture(scope="class", autouse=True)
    def the_bucket(self, s3: Any) -> None:
        s3.create_bucket(Bucket="copy-progress")

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders_export.sql": EXPORT}

    @pytest.mark.usefixtures("often")
    def test_events_can_be_filtered_by_name(self, project: Any, aws_connection: Any) -> None:
        _, log = run_dbt_and_capture(["--log-format", "json", "--log-level", "debug", "run"])
        lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
        found: dict[str, list[dict[str, Any]]] = {}
        for line in lines:
            if line["info"]["name"] == "CopyLogEvent":
                found.setdefault(line["data"]["name"], []).append(line)
        assert list(found) == ["mzs3.copy.started", "mzs3.copy.progress", "mzs3.copy.committed"]
        for events in found.values():
            for event in events:
                assert event["data"]["unique_id"] == "model.test.orders_export"
                assert event["data"]["node_info"]["unique_id"] == "model.test.orders_export"
                assert event["data"]["location"] == "s3://copy-progress/orders/"
                assert event["info"]["msg"].startswith(f"{project.test_schema}.orders_export: ")
        told = found["mzs3.copy.progress"][0]
        assert told["info"]["level"] == "info"
        assert {"phase", "parts_done", "parts", "rows", "bytes"} < set(told["data"])
        [committed] = found["mzs3.copy.committed"]
        assert (committed["data"]["rows"], committed["data"]["files"]) == (100, 2)
        assert committed["data"]["manifest"] == "s3://copy-progress/orders/_manifest.json"
        for secret in ("access_key_id", "secret_access_key", "session_token"):
            assert aws_connection[secret] not in log
