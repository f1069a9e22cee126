"""What a resumed run says it reused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from support.export.committing import export_of, prepared
from support.s3.memory import MemoryS3

from dbt.adapters.mzs3.events import CopyEvent
from dbt.adapters.mzs3.export.monitor import (
    ResumedParts,
    RunContext,
    RunMonitor,
    count_resumed_parts,
)
from dbt.adapters.mzs3.export.options import CopyOptions, OnExisting
from dbt.adapters.mzs3.upload.pending import PendingFile
from dbt.adapters.mzs3.upload.spec import OpenUpload

MD5_OF_ZERO = "93b885adfe0da089cdf634904fd59f71"  # of one byte


def file(key: str, upload_id: str, *etags: str) -> PendingFile:
    return PendingFile(0, 1, key, upload_id, etags, rows=1, bytes=9, sha256="")


def test_only_parts_that_were_not_sent_again_are_reused() -> None:
    found = {
        "p/1": [OpenUpload("one", {1: ("a", 50), 2: ("b", 50), 3: ("old", 50)})],
        "p/2": [OpenUpload("two", {1: ("d", 7)})],
        "p/3": [OpenUpload("gone", {1: ("e", 7)})],
    }
    files = [
        file("p/1", "one", "a", "b", "new", "more"),
        file("p/2", "another", "d"),  # the same bytes, but sent to an upload of its own
        file("p/4", "four", "f"),
    ]
    assert count_resumed_parts(found, files) == ResumedParts(parts=2, of_parts=6, bytes=100)
    assert count_resumed_parts({}, files) == ResumedParts(parts=0, of_parts=6, bytes=0)


def test_how_it_is_told() -> None:
    told: list[CopyEvent] = []
    export: Any = SimpleNamespace(
        node="b", location=SimpleNamespace(uri="s3://b/p/"), options=SimpleNamespace(parts=1)
    )
    nothing: Any = None
    monitor = RunMonitor(nothing, export, RunContext("a", "b", tell=told.append), None)
    monitor.note_resumed(ResumedParts(parts=2, of_parts=6, bytes=2048))
    monitor.note_already_whole()
    assert [event.message for event in told] == [
        "a.b: resume: 2 of 6 upload parts, 2 kB, taken over from an earlier run",
        "a.b: resume: the export in s3://b/p/ is whole, and the same; nothing is sent",
    ]


@pytest.mark.parametrize(
    ("mode", "etag", "asked"),
    [("resume", "kms", True), ("resume", MD5_OF_ZERO, False), ("overwrite", "kms", False)],
)
def test_parts_have_a_sha256_where_a_run_to_resume_could_not_be_compared_without(
    mode: OnExisting, etag: str, asked: bool
) -> None:
    s3 = MemoryS3()
    s3.upload_part = lambda **_: {"ETag": f'"{etag}"'}  # type: ignore[method-assign]
    export = export_of("b", "x/", CopyOptions("s3://b/x/", on_existing=mode))
    assert export.write_spec(prepared(s3, mode)).with_sha256 is asked
