"""Events: a line for people, fields for programs."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.events.base_types import msg_from_base_event
from dbt_common.events.functions import msg_to_json

from dbt.adapters.mzs3 import dbt_log
from dbt.adapters.mzs3.dbt_log import CopyLogEvent, Warnings
from dbt.adapters.mzs3.errors import CopyError
from dbt.adapters.mzs3.events import CopyEvent, copy_warning
from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.export.monitor import RunContext, RunMonitor
from dbt.adapters.mzs3.export.progress import Snapshot
from dbt.adapters.mzs3.text import duration_text

URI = "s3://acme/exports/orders/"
NODE = "model.shop.orders_export"
ABOUT = {"relation": "analytics.orders_export", "unique_id": NODE, "location": URI}
SEEN = Snapshot("writing", 12, 24, 3_400_000, 512 << 20, float(48 << 20))
RESULT = CopyResult(rows=1234, location=URI, manifest="s3://m", files=4, bytes=2048, as_of=1)


class Told(list[CopyEvent]):
    """What a run tells of itself; it has no history."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def monitor(self, parts: int = 24) -> RunMonitor:
        export: Any = SimpleNamespace(
            node=NODE,
            location=SimpleNamespace(uri=URI),
            options=SimpleNamespace(parts=parts),
            as_of=1,
        )
        spark: Any = None
        context = RunContext(None, "analytics.orders_export", tell=self.append)
        return RunMonitor(spark, export, context, self.cancelled)


def progress(seen: Snapshot = SEEN, parts: int = 24) -> CopyEvent:
    told = Told()
    monitor = told.monitor(parts)
    monitor._clock = time.monotonic() - 11.4
    monitor._tell_progress(seen)
    [event] = told
    return event


def test_progress_has_parts_rows_bytes_rate_and_time() -> None:
    line = "12 of 24 parts, 3,400,000 rows, 512 MB, 48 MB/s, 0:11"
    assert progress().message == f"analytics.orders_export: {line}"
    assert progress().message_with_bar == f"analytics.orders_export: [########--------] {line}"


def test_without_a_rate_yet_there_is_none() -> None:
    said = progress(Snapshot("writing", 0, 1, 1, 0, None)).message
    assert said == "analytics.orders_export: 0 of 1 part, 1 row, 0 B, 0:11"


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        ("computing", "Spark is computing the rows, no part has reported yet, 0:11"),
        ("committing", "all files are uploaded and being committed, 0:11"),
        ("running", "COPY is running, 0:11"),
    ],
)
def test_other_phases_say_what_happens_and_have_no_bar(phase: Any, said: str) -> None:
    event = progress(Snapshot(phase))
    assert event.message == event.message_with_bar == f"analytics.orders_export: {said}"


def test_every_kind_has_a_name_of_its_own_and_a_message() -> None:
    events = Told()
    with events.monitor(parts=4) as monitor:
        monitor.note_recovered("an earlier run was cut off")
        monitor.note_committed(RESULT)
    with pytest.raises(CopyError), events.monitor():
        raise CopyError("no room")
    with pytest.raises(CopyError), events.monitor(parts=1):
        events.cancelled.set()
        raise CopyError("stopped")
    events.append(copy_warning(**ABOUT, warning="no history"))
    assert [(event.name.removeprefix("mzs3.copy."), event.level) for event in events] == [
        ("started", "debug"),
        ("recovered", "info"),
        ("committed", "info"),
        ("started", "debug"),
        ("failed", "debug"),
        ("started", "debug"),
        ("cancelled", "debug"),
        ("warning", "warn"),
    ]
    assert [event.message.removeprefix("analytics.orders_export: ") for event in events] == [
        "COPY to s3://acme/exports/orders/ in 4 parts",
        "an earlier run was cut off",
        "1,234 rows, 4 files, 2 kB in s3://acme/exports/orders/, 0:00",
        "COPY to s3://acme/exports/orders/ in 24 parts",
        "COPY to s3://acme/exports/orders/ failed: no room",
        "COPY to s3://acme/exports/orders/ in 1 part",
        "COPY to s3://acme/exports/orders/ was cancelled",
        "no history",
    ]


def test_every_kind_has_its_fields() -> None:
    told = Told()
    with told.monitor() as monitor:
        monitor.begin_again("wide rows")
        monitor.note_already_whole()
        monitor._tell_progress(SEEN)
        monitor.note_committed(RESULT)
    assert [{**event.fields, "elapsed": 0} for event in told] == [
        {**ABOUT, "elapsed": 0, **fields}
        for fields in (
            {"parts": 24, "as_of": 1},
            {"reason": "wide rows", "limit": 16384},
            {"parts": 0, "of_parts": 0, "bytes": 0, "finished": True},
            {"parts": 24, **asdict(SEEN)},
            {"manifest": "s3://m", "rows": 1234, "bytes": 2048, "files": 4},
        )
    ]


def test_in_a_structured_log_the_fields_are_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    fired: list[CopyLogEvent] = []
    monkeypatch.setattr(dbt_log, "fire_event", lambda event, level: fired.append(event))
    event = progress(replace(SEEN, bytes=5 << 40))
    Warnings().tell(event)
    line = json.loads(msg_to_json(msg_from_base_event(fired[0])))
    assert line["info"]["name"] == "CopyLogEvent"
    assert line["info"]["msg"] == event.message
    assert line["data"] == {"name": "mzs3.copy.progress", "msg": event.message, **event.fields}


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.9, "0:00"), (61, "1:01"), (3599, "59:59"), (3600, "1:00:00")]
)
def test_times(seconds: float, shown: str) -> None:
    assert duration_text(seconds) == shown
