"""A worker's part of an export: files within the limit, no row split, uploads left open."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st
from support.s3.opened import bucket_of

from dbt.adapters.mzs3.arrow.packed import PackedColumn
from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.write.csv.format import CsvFormat
from dbt.adapters.mzs3.formats.write.format import ExportedColumn
from dbt.adapters.mzs3.formats.write.parquet import ParquetFormat
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.upload import file_upload
from dbt.adapters.mzs3.upload.spec import NOTE_PART, OpenUpload, WriteSpec, note_of
from dbt.adapters.mzs3.upload.task import write_empty_part, write_parts

CSV = "text/csv; charset=utf-8"


@dataclass
class FakeS3:
    """Open multipart uploads, and nothing else; `fail_at` refuses the n-th part of any upload."""

    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    sums: dict[int, str] = field(default_factory=dict)
    keeps_sha256: bool = True
    aborted: set[str] = field(default_factory=set)
    fail_at: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def create_multipart_upload(
        self, *, Key: str, ChecksumAlgorithm: str = "", **_: Any
    ) -> dict[str, str]:
        self.uploads[Key] = {}
        echo = {"ChecksumAlgorithm": ChecksumAlgorithm} if self.keeps_sha256 else {}
        return {"UploadId": f"id of {Key}", **echo}

    def upload_part(
        self, *, Key: str, PartNumber: int, Body: bytes, ChecksumSHA256: str = "", **_: Any
    ) -> dict[str, str]:
        if PartNumber == self.fail_at:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "No."}}, "UploadPart")
        with self.lock:
            self.uploads[Key][PartNumber] = Body
            self.sums[PartNumber] = ChecksumSHA256
        return {"ETag": f"etag {PartNumber}"}

    def abort_multipart_upload(self, *, Key: str, **_: Any) -> None:
        self.aborted.add(Key)

    def content(self, key: str) -> bytes:
        return b"".join(body for _, body in sorted(self.uploads[key].items()))


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> FakeS3:
    fake = FakeS3()
    monkeypatch.setattr(file_upload, "shared_store", lambda _, at: bucket_of(fake, at.bucket))
    return fake


def spec(*, header: bool = False, **changes: Any) -> WriteSpec:
    values: dict[str, Any] = {
        "connection": AwsConnection(),
        "location": S3Location("bucket", "exports/"),
        "columns": (ExportedColumn("text"),),
        "format": CsvFormat("none", header),
        "max_file_size": 1 << 20,
        "part_size": 64,
        "max_bytes_in_memory": 1 << 20,
    }
    return WriteSpec(**{**values, **changes})


def batch(parts: list[int], texts: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array(parts, pa.int32()), pa.array(texts, pa.string())], names=["part", "c0"]
    )


def outcome(
    settings: WriteSpec, *batches: pa.RecordBatch
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Reports of files, and the one of the task."""
    write = write_parts(settings, lambda: SimpleNamespace(stageId=lambda: 7))
    reports = [text for report in write(iter(batches)) for text in report.column(0).to_pylist()]
    *files, task = map(json.loads, reports)
    return files, task


def run(settings: WriteSpec, *batches: pa.RecordBatch) -> list[dict[str, Any]]:
    files, _ = outcome(settings, *batches)
    return files


def hashed(hashes: list[int], texts: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([0] * len(hashes), pa.int32()), pa.array(hashes, pa.int64()), pa.array(texts)],
        names=["part", "hash", "c0"],
    )


def test_rows_that_are_sorted_by_their_hash_are_written_without_it(s3: FakeS3) -> None:
    [report] = run(spec(packed=(PackedColumn(0),)), hashed([1, 1, 2], ["a", "a", "b"]))
    assert s3.content(report["key"]) == b"a\na\nb\n"


def test_different_rows_of_one_hash_leave_no_upload_and_a_row_that_says_so(s3: FakeS3) -> None:
    ties = spec(packed=(PackedColumn(0),), part_size=2)
    files, task = outcome(ties, hashed([1, 2, 2], ["a", "b", "c"]))
    assert (files, task["refuted"]) == ([], "equal hashes")
    many = [hashed([i], ["x" * 3000]) for i in range(6000)]  # more than is gathered
    settings = spec(packed=(PackedColumn(0),), part_size=1 << 20)
    files, task = outcome(settings, *many, hashed([5999], ["y"]))
    assert (files, task["refuted"]) == ([], "equal hashes")
    assert s3.aborted == s3.uploads.keys() != set()


def test_a_batch_that_is_too_large_before_its_last_row_leaves_no_upload(s3: FakeS3) -> None:
    limited = spec(max_batch_bytes=2000)
    empty, long = batch([], []), "x" * 3000
    files, task = outcome(limited, empty, batch([0, 0], ["a", long]), batch([0], [long]))
    assert (len(files), task["refuted"]) == (1, None)
    files, task = outcome(limited, batch([0, 0], [long, "a"]))
    assert (files, task["refuted"]) == ([], "doubtful batches")


_ZONED = pa.timestamp("us", "Europe/Berlin")


@pytest.mark.parametrize(
    ("kind", "sure", "doubtful"),
    [
        (pa.date32(), [-141_427, None], -141_428),
        (_ZONED, [-2_208_988_800_000_000, None], -2_208_988_800_000_001),
        (pa.string(), ["é", "", None], "a\ufffd"),
        (pa.large_string(), ["e"], "\ufffd"),
        (pa.list_(pa.date32()), [[0, None], [], None], [0, -200_000]),
        (pa.struct({"a": pa.string()}), [{"a": "é"}, None], {"a": "\ufffd"}),
    ],
    ids=str,
)
def test_what_comet_may_have_read_in_another_way_is_refuted(
    s3: FakeS3, kind: pa.DataType, sure: list[Any], doubtful: Any
) -> None:
    def refuted(values: list[Any]) -> str | None:
        column = pa.array(values, kind)
        rows = pa.RecordBatch.from_arrays([pa.array([0] * len(column)), column], ["part", "c0"])
        _, task = outcome(spec(format=ParquetFormat(), max_batch_bytes=2000), rows)
        return task["refuted"]

    assert refuted(sure) is None
    assert refuted([*sure, doubtful]) == "doubtful batches"


def test_a_task_tells_its_stage_with_files_and_without(s3: FakeS3) -> None:
    for batches in ([], [batch([0], ["a"])], [batch([0, 1], ["a", "b"])]):
        _, task = outcome(spec(), *batches)
        assert task == {"stage": 7, "refuted": None, "sums": [0, 0]}


def test_a_task_tells_the_sums_of_what_comes_and_goes(s3: FakeS3) -> None:
    columns = (ExportedColumn("d"), ExportedColumn("text"))
    batches = [
        pa.record_batch({"part": pa.array([part] * 3), "d": numbers, "text": ["a", "b", "c"]})
        for part, numbers in ((0, [3, -5, 0]), (1, [-1, 2, -1]))
    ]
    _, task = outcome(spec(columns=columns, summed=0), *batches)
    assert task["sums"] == [5, -7]


def test_parts_become_files_in_order_and_stay_open(s3: FakeS3) -> None:
    reports = run(spec(), batch([0, 0, 2], ["a", "b", "c"]), batch([2, 5], ["d", "e"]))
    keys = [report["key"] for report in reports]
    assert keys == [f"exports/part-000{part}-0001.csv" for part in (0, 2, 5)]
    assert [s3.content(key) for key in keys] == [b"a\nb\n", b"c\nd\n", b"e\n"]
    assert [report["rows"] for report in reports] == [2, 2, 1]
    assert not s3.aborted


def test_a_report_says_all_that_a_commit_needs(s3: FakeS3) -> None:
    [report] = run(spec(part_size=2), batch([0, 0], ["a", "b"]))
    assert report == {
        "part": 0,
        "number": 1,
        "folder": "",
        "key": "exports/part-0000-0001.csv",
        "upload_id": "id of exports/part-0000-0001.csv",
        "etags": ["etag 1", "etag 2"],
        "rows": 2,
        "bytes": 4,
        "sha256": hashlib.sha256(b"a\nb\n").hexdigest(),
    }


def test_upload_parts_are_of_one_size_but_for_the_last(s3: FakeS3) -> None:
    [report] = run(spec(part_size=7), batch([0] * 6, ["abcd"] * 6))
    sizes = [len(body) for _, body in sorted(s3.uploads[report["key"]].items())]
    assert sizes == [7, 7, 7, 7, 2]


def test_the_header_is_in_every_file_and_counts(s3: FakeS3) -> None:
    reports = run(spec(header=True, max_file_size=11), batch([0] * 4, ["abc"] * 4))
    contents = [s3.content(report["key"]) for report in reports]
    assert contents == [b"text\nabc\n", b"text\nabc\n", b"text\nabc\n", b"text\nabc\n"]


def test_a_row_above_the_limit_gets_a_file_of_its_own(s3: FakeS3) -> None:
    reports = run(spec(max_file_size=6), batch([0] * 4, ["a", "b" * 20, "c", "d"]))
    contents = [s3.content(report["key"]) for report in reports]
    assert contents == [b"a\n", b"b" * 20 + b"\n", b"c\nd\n"]


ROWS = st.lists(st.text("ab", max_size=12), min_size=1, max_size=60)


@given(ROWS, st.integers(1, 40), st.booleans(), st.integers(1, 9), st.integers(1, 60))
def test_files_hold_every_row_once_whole_and_within_the_limit(
    texts: list[str], limit: int, header: bool, part_size: int, batch_rows: int
) -> None:
    fake = FakeS3()
    original, file_upload.shared_store = (
        file_upload.shared_store,
        lambda _, at: bucket_of(fake, at.bucket),
    )  # type: ignore[assignment]
    try:
        settings = spec(max_file_size=limit, header=header, part_size=part_size)
        cuts = range(0, len(texts), batch_rows)
        pieces = [texts[i : i + batch_rows] for i in cuts]
        reports = run(settings, *[batch([3] * len(piece), piece) for piece in pieces])
    finally:
        file_upload.shared_store = original
    lines = [(text or '""') + "\n" for text in texts]
    head = "text\n" if header else ""
    contents = [fake.content(report["key"]).decode() for report in reports]
    assert all(content.startswith(head) for content in contents)
    assert "".join(content[len(head) :] for content in contents) == "".join(lines)
    for content, report in zip(contents, reports, strict=True):
        assert len(content) <= limit or report["rows"] == 1
        assert report["rows"] == content[len(head) :].count("\n")
    # No file could have taken the first row of the next one.
    for this, following in pairwise(contents):
        next_row = following[len(head) :].split("\n")[0] + "\n"
        assert len(this) + len(next_row) > limit


def test_a_refused_part_aborts_the_tasks_uploads(s3: FakeS3) -> None:
    s3.fail_at = 3
    with pytest.raises(ExecutorError) as failure:
        run(spec(part_size=4), batch([0] * 9, ["abc"] * 9))
    assert failure.value.message == (
        "uploading part 3 of s3://bucket/exports/part-0000-0001.csv failed: "
        "AccessDenied: No. (needs s3:PutObject)"
    )
    assert s3.aborted == set(s3.uploads)


def test_a_failure_of_the_query_aborts_finished_files(s3: FakeS3) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield batch([0] * 20_000 + [1], ["a"] * 20_001)  # so many that none is held back
        raise RuntimeError("the query failed")

    with pytest.raises(RuntimeError, match="the query failed"):
        list(write_parts(spec(), lambda: None)(batches()))
    assert s3.aborted == set(s3.uploads) == {"exports/part-0000-0001.csv"}


def left_open(parts: dict[int, tuple[str, int]], **properties: str) -> OpenUpload:
    """The upload of a run that was to be resumed."""
    note = note_of({"ContentType": CSV, **properties})
    md5 = hashlib.md5(note, usedforsecurity=False).hexdigest()
    return OpenUpload("old id", {**parts, NOTE_PART: (f'"{md5}"', len(note))})


def test_a_failure_leaves_the_upload_of_an_interrupted_run_to_the_next_attempt(
    s3: FakeS3,
) -> None:
    key = "exports/part-0000-0001.csv"
    s3.uploads[key] = {}
    s3.fail_at = 2
    settings = spec(part_size=4, reusable={key: [left_open({})]})
    with pytest.raises(ExecutorError):
        run(settings, batch([0] * 9, ["abc"] * 9))
    assert not s3.aborted


def test_a_single_file_never_becomes_two(s3: FakeS3) -> None:
    with pytest.raises(ExecutorError, match="would pass the size that S3 takes as one object"):
        run(spec(single_file="all.csv", max_file_size=6), batch([0] * 4, ["abc"] * 4))


def test_a_part_without_rows_is_one_empty_file_or_a_header(s3: FakeS3) -> None:
    schema = pa.schema([("c0", pa.string())])
    [report] = write_empty_part(spec(), schema)
    assert (report["rows"], report["bytes"], report["etags"]) == (0, 0, ["etag 1"])
    [report] = write_empty_part(spec(header=True), schema)
    assert s3.content("exports/part-0000-0001.csv") == b"text\n"


def test_without_rows_the_one_file_is_in_the_folder_of_nulls(s3: FakeS3) -> None:
    columns = (ExportedColumn("country"), ExportedColumn("text"), ExportedColumn("day"))
    schema = pa.schema([("c0", pa.string()), ("c1", pa.string()), ("c2", pa.date32())])
    settings = spec(header=True, columns=columns, partition_by=(2, 0))
    [report] = write_empty_part(settings, schema)
    null = "__HIVE_DEFAULT_PARTITION__"
    assert report["folder"] == f"day={null}/country={null}/"
    assert s3.content(f"exports/day={null}/country={null}/part-0000-0001.csv") == b"text\n"


@pytest.mark.parametrize(
    ("memory", "part_size", "under_way"), [(64, 8, 4), (32, 8, 2), (16, 8, 1), (9, 8, 1)]
)
def test_memory_bounds_the_parts_under_way(
    s3: FakeS3, memory: int, part_size: int, under_way: int
) -> None:
    lock, now, most = threading.Lock(), 0, 0
    all_there = threading.Event()
    store = s3.upload_part

    def slow(**arguments: Any) -> dict[str, str]:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
            if now == under_way:
                all_there.set()
        assert all_there.wait(10)  # as many as may be under way are, at some time
        with lock:
            now -= 1
        return store(**arguments)

    s3.upload_part = slow  # type: ignore[method-assign]
    run(spec(max_bytes_in_memory=memory, part_size=part_size), batch([0] * 40, ["abc"] * 40))
    assert most == under_way


def sha256(body: bytes) -> str:
    return base64.b64encode(hashlib.sha256(body).digest()).decode()


def test_where_etags_tell_nothing_parts_are_sent_with_their_sha256(s3: FakeS3) -> None:
    rows = batch([0] * 3, ["abc"] * 3)
    run(spec(part_size=8, resumable=True, with_sha256=True), rows)
    assert s3.sums == {
        1: sha256(b"abc\nabc\n"),
        2: sha256(b"abc\n"),
        NOTE_PART: sha256(note_of({"ContentType": CSV})),
    }
    s3.keeps_sha256 = False
    run(spec(part_size=8, resumable=True, with_sha256=True), rows)
    assert s3.sums == {1: "", 2: "", NOTE_PART: ""}


def test_what_s3_lists_with_the_same_sha256_is_not_sent_again(s3: FakeS3) -> None:
    key = "exports/part-0000-0001.csv"
    s3.uploads[key] = {}
    note, same = note_of({"ContentType": CSV}), sha256(b"abc\nabc\n")
    parts = {
        1: (f'"kms1" sha256={same}', 8),
        2: (f'"kms2" sha256={sha256(b"other..!")}', 8),
        3: (f'"kms3" sha256={same}', 7),
        NOTE_PART: (f'"kms4" sha256={sha256(note)}', len(note)),
    }
    upload = OpenUpload("old id", parts)
    settings = spec(part_size=8, reusable={key: [upload]}, resumable=True, with_sha256=True)
    [report] = run(settings, batch([0] * 7, ["abc"] * 7))
    assert report["upload_id"] == "old id"
    assert report["etags"] == [
        f'"kms1" sha256={same}',
        f"etag 2 sha256={same}",
        f"etag 3 sha256={same}",
        f"etag 4 sha256={sha256(b'abc' + bytes([10]))}",
    ]
    assert sorted(s3.uploads[key]) == [2, 3, 4]


def test_an_upload_without_sha256_is_continued_without(s3: FakeS3) -> None:
    key = "exports/part-0000-0001.csv"
    s3.uploads[key] = {}
    settings = spec(part_size=8, reusable={key: [left_open({})]}, with_sha256=True)
    run(settings, batch([0] * 3, ["abc"] * 3))
    assert s3.sums == {1: "", 2: ""}


def test_what_an_interrupted_run_has_uploaded_is_not_sent_again(s3: FakeS3) -> None:
    key = "exports/part-0000-0001.csv"
    s3.uploads[key] = {}
    same = hashlib.md5(b"abc\nabc\n", usedforsecurity=False).hexdigest()
    parts = {1: (f'"{same}"', 8), 2: ("other", 8), 3: (f'"{same}"', 7)}
    settings = spec(part_size=8, reusable={key: [left_open(parts)]}, resumable=True)
    [report] = run(settings, batch([0] * 7, ["abc"] * 7))
    assert report["upload_id"] == "old id"
    assert report["etags"] == [f'"{same}"', "etag 2", "etag 3", "etag 4"]
    assert sorted(s3.uploads[key]) == [2, 3, 4]


@pytest.mark.parametrize("now", [{}, {"ACL": "private"}, {"ACL": "public-read", "Tagging": "a=b"}])
def test_an_upload_with_other_properties_is_not_continued(s3: FakeS3, now: dict[str, str]) -> None:
    key = "exports/part-0000-0001.csv"
    unknown = OpenUpload("unknown id", {})
    before = left_open({}, ACL="public-read")
    settings = spec(part_size=8, reusable={key: [unknown, before]}, properties=now)
    [report] = run(settings, batch([0] * 7, ["abc"] * 7))
    assert report["upload_id"] == f"id of {key}"
    settings = spec(reusable={key: [unknown, before]}, properties={"ACL": "public-read"})
    [report] = run(settings, batch([0] * 7, ["abc"] * 7))
    assert report["upload_id"] == "old id"


@pytest.mark.parametrize(("rows", "count"), [(7, 4), (4, 2)])
def test_an_upload_of_some_parts_tells_what_it_was_opened_with(
    s3: FakeS3, rows: int, count: int
) -> None:
    settings = spec(part_size=8, resumable=True, properties={"ACL": "private"})
    [report] = run(settings, batch([0] * rows, ["abc"] * rows))
    [parts] = s3.uploads.values()
    assert sorted(parts) == [*range(1, count + 1), NOTE_PART]
    assert parts[NOTE_PART] == note_of({"ContentType": CSV, "ACL": "private"})
    assert report["etags"] == [f"etag {number}" for number in range(1, count + 1)]


def test_a_dry_run_reports_the_same_and_sends_nothing(s3: FakeS3) -> None:
    rows = batch([0, 0, 4], ["a", "b", "c"])
    real = run(spec(), rows)
    s3.uploads.clear()
    dry = run(spec(dry=True), rows)
    assert not s3.uploads
    for report in [*real, *dry]:
        del report["upload_id"], report["etags"]
    assert dry == real


def test_folders_and_first_number_and_single_file_name_the_files(s3: FakeS3) -> None:
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array([1, 1, 1, 1], pa.int32()),
            pa.array(["a", "b", "c", "d"]),
            pa.array(["NZ", "NZ", None, "a/b"]),
        ],
        names=["part", "c0", "c1"],
    )
    columns = (ExportedColumn("text"), ExportedColumn("in country"))
    reports = run(spec(columns=columns, partition_by=(1,), first_number=5001), rows)
    assert [(report["key"], report["rows"]) for report in reports] == [
        ("exports/in country=NZ/part-0001-5001.csv", 2),
        ("exports/in country=__HIVE_DEFAULT_PARTITION__/part-0001-5001.csv", 1),
        ("exports/in country=a%2Fb/part-0001-5001.csv", 1),
    ]
    assert s3.content(reports[0]["key"]) == b"a\nb\n"
    [report] = run(spec(single_file="all.csv"), batch([0], ["a"]))
    assert report["key"] == "exports/all.csv"


def test_the_spec_shows_no_secret() -> None:
    connection = AwsConnection(access_key_id="AKIA", secret_access_key="hush")
    assert "hush" not in repr(spec(connection=connection))
