"""Events: a line for people, fields for programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from dbt_common.events.base_types import msg_from_base_event
from dbt_common.events.functions import msg_to_json

from dbt.adapters.mzs3 import python_job
from dbt.adapters.mzs3.events import (
    CopyCancelled,
    CopyCommitted,
    CopyEvent,
    CopyFailed,
    CopyProgress,
    CopyRecovered,
    CopyStarted,
    CopyWarning,
)
from dbt.adapters.mzs3.python_job import CopyLogEvent
from dbt.adapters.mzs3.text import shown_duration

ABOUT: dict[str, Any] = {
    "relation": "analytics.orders_export",
    "unique_id": "model.shop.orders_export",
    "location": "s3://acme/exports/orders/",
}


def progress(**changed: Any) -> CopyProgress:
    known: dict[str, Any] = {
        "phase": "writing",
        "parts_done": 12,
        "parts": 24,
        "rows": 3_400_000,
        "bytes": 512 << 20,
        "bytes_per_second": float(48 << 20),
        "elapsed": 11.4,
    }
    return CopyProgress(**ABOUT, **{**known, **changed})


def test_progress_has_parts_rows_bytes_rate_and_time() -> None:
    line = "12 of 24 parts, 3,400,000 rows, 512 MB, 48 MB/s, 0:11"
    assert progress().message == f"analytics.orders_export: {line}"
    assert progress().message_with_bar == f"analytics.orders_export: [########--------] {line}"


def test_without_a_rate_yet_there_is_none() -> None:
    said = progress(bytes_per_second=None, parts=1, parts_done=0, rows=1, bytes=0).message
    assert said == "analytics.orders_export: 0 of 1 part, 1 row, 0 B, 0:11"


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        ("computing", "Spark is computing the rows, no part has reported yet, 0:11"),
        ("committing", "all files are uploaded and being committed, 0:11"),
        ("running", "COPY is running, 0:11"),
    ],
)
def test_other_phases_say_what_happens_and_have_no_bar(phase: str, said: str) -> None:
    event = progress(phase=phase, parts_done=None, rows=None, bytes=None, bytes_per_second=None)
    assert event.message == event.message_with_bar == f"analytics.orders_export: {said}"


def test_every_kind_has_a_name_of_its_own_and_a_message() -> None:
    events: list[CopyEvent] = [
        CopyStarted(**ABOUT, parts=4, as_of=1),
        progress(),
        CopyCommitted(**ABOUT, manifest="s3://m", rows=1234, bytes=2048, files=4, elapsed=2.1),
        CopyFailed(**ABOUT, error="no room", elapsed=1.0),
        CopyCancelled(**ABOUT, error="", elapsed=1.0),
        CopyRecovered(**ABOUT, recovered="an earlier run was cut off"),
        CopyWarning(**ABOUT, warning="no history"),
    ]
    assert [(event.name.removeprefix("mzs3.copy."), event.level) for event in events] == [
        ("started", "debug"),
        ("progress", "info"),
        ("committed", "info"),
        ("failed", "debug"),
        ("cancelled", "debug"),
        ("recovered", "info"),
        ("warning", "warn"),
    ]
    assert [event.message.removeprefix("analytics.orders_export: ") for event in events] == [
        "COPY to s3://acme/exports/orders/ in 4 parts",
        "12 of 24 parts, 3,400,000 rows, 512 MB, 48 MB/s, 0:11",
        "1,234 rows, 4 files, 2 kB in s3://acme/exports/orders/, 0:02",
        "COPY to s3://acme/exports/orders/ failed: no room",
        "COPY to s3://acme/exports/orders/ was cancelled",
        "an earlier run was cut off",
        "no history",
    ]


def test_in_a_structured_log_the_fields_are_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    fired: list[CopyLogEvent] = []
    monkeypatch.setattr(python_job, "fire_event", lambda event, level: fired.append(event))
    event = progress(bytes=5 << 40)
    python_job.log_copy_event(event)
    line = json.loads(msg_to_json(msg_from_base_event(fired[0])))
    assert line["info"]["name"] == "CopyLogEvent"
    assert line["info"]["msg"] == event.message
    assert line["data"] == {"name": "mzs3.copy.progress", "msg": event.message, **asdict(event)}


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.9, "0:00"), (61, "1:01"), (3599, "59:59"), (3600, "1:00:00")]
)
def test_times(seconds: float, shown: str) -> None:
    assert shown_duration(seconds) == shown
