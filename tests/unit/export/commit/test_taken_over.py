"""What a resumed run says it took over."""

from __future__ import annotations

from dbt.adapters.mzs3.events import CopyResumed
from dbt.adapters.mzs3.export.commit.manifest import TakenOver, taken_over
from dbt.adapters.mzs3.upload.pending import PendingFile
from dbt.adapters.mzs3.upload.spec import OpenUpload

ABOUT = {"relation": "a.b", "unique_id": "model.x.b", "location": "s3://b/p/"}


def file(key: str, upload_id: str, *etags: str) -> PendingFile:
    return PendingFile(0, 1, key, upload_id, etags, rows=1, bytes=9, sha256="")


def test_only_parts_that_were_not_sent_again_are_taken_over() -> None:
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
    assert taken_over(found, files) == TakenOver(parts=2, of_parts=6, bytes=100)
    assert taken_over({}, files) == TakenOver(parts=0, of_parts=6, bytes=0)


def test_how_it_is_told() -> None:
    told = CopyResumed(**ABOUT, parts=2, of_parts=6, bytes=2048, finished=False)
    assert told.message == (
        "a.b: resume: 2 of 6 upload parts, 2 kB, taken over from an earlier run"
    )
    told = CopyResumed(**ABOUT, parts=0, of_parts=0, bytes=0, finished=True)
    assert told.message.endswith("is whole, and the same; nothing is sent")
