"""Sweeping aborts what the export left open, and nothing that is somebody else's."""

from __future__ import annotations

from typing import Any

import pytest
from support.s3.memory import MemoryS3, failure
from support.s3.opened import prefix_of

from dbt.adapters.mzs3.export.commit.intent import PendingExport, claimed_uploads
from dbt.adapters.mzs3.export.commit.protocol import Commit
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.upload import reaper as upload_reaper
from dbt.adapters.mzs3.upload.pending import PendingFile
from dbt.adapters.mzs3.upload.reaper import UploadReaper

LOCATION = S3Location("b", "x/")
PART = "x/part-0000-0001.csv"


@pytest.fixture
def s3() -> MemoryS3:
    return MemoryS3()


EMPTY: dict[str, Any] = {"entries": [], "run_id": "r", "meta": {}}


def claim(s3: MemoryS3, file: PendingFile) -> None:
    Commit(prefix(s3), PendingExport((file,), EMPTY), has_conditional_deletes=True).claim()


def prefix(s3: MemoryS3) -> Prefix:
    client: Any = s3
    return prefix_of(client, LOCATION)


def reaper(s3: MemoryS3, *, take_over: bool = False) -> UploadReaper:
    probe = s3.opened("x/_mzs3_probe")
    made = UploadReaper(prefix(s3), probe.upload_id, take_over=take_over, claimed=claimed_uploads)
    s3.abort_multipart_upload(Key=probe.key, UploadId=probe.upload_id)
    return made


def ended() -> bool:
    """What Spark reports of tasks."""
    return False


def left_open(s3: MemoryS3) -> list[str]:
    return [key for key, _ in s3.uploads.values()]


def test_the_exports_own_files_are_swept_and_no_others(s3: MemoryS3) -> None:
    s3.opened("x/part-0000-0009.csv")  # open before: another run's
    made = reaper(s3)
    kept = s3.opened(PART)
    for key in (PART, "x/part-0001-0001.csv", "x/orders/part-0000-0001.csv", "x/app.parquet"):
        s3.opened(key)
    assert made.abort_stale(keep={kept.upload_id}) is None
    assert sorted(left_open(s3)) == [
        "x/app.parquet",
        "x/orders/part-0000-0001.csv",
        PART,
        "x/part-0000-0009.csv",
    ]


def test_what_a_claim_names_is_spared(s3: MemoryS3) -> None:
    made = reaper(s3)
    claimed = s3.opened(PART)
    Commit(
        prefix(s3),
        PendingExport((claimed,), {"entries": [], "run_id": "r", "meta": {}}),
        has_conditional_deletes=True,
    ).claim()
    s3.opened("x/part-0001-0001.csv")
    assert made.abort_until_idle(ended) is None
    assert left_open(s3) == [PART]


def test_what_is_claimed_while_it_lists_is_spared(s3: MemoryS3) -> None:
    """The claim is looked for after that, as of what is listed all may be claimed by then."""
    made = reaper(s3)
    s3.opened("x/part-0001-0001.csv")

    def claim_meanwhile(action: str, key: str) -> None:
        if action == "ListMultipartUploads":
            s3.before = lambda *_: None
            claim(s3, s3.opened(PART))

    s3.before = claim_meanwhile
    assert made.abort_stale() is None
    assert left_open(s3) == [PART]


def no_reading(action: str, key: str) -> None:
    if action == "GetObject":
        raise failure("AccessDenied")


def test_a_claim_that_can_not_be_read_spares_all(s3: MemoryS3) -> None:
    made = reaper(s3)
    claimed = s3.opened(PART)
    Commit(
        prefix(s3),
        PendingExport((claimed,), {"entries": [], "run_id": "r", "meta": {}}),
        has_conditional_deletes=True,
    ).claim()
    s3.before = no_reading
    for text in (made.abort_stale(), made.abort_until_idle(ended)):
        assert text is not None
        assert "x/_committing.json, which may name open uploads of another run" in text
        assert "aws s3api list-multipart-uploads --bucket b --prefix x/" in text
    assert left_open(s3) == [PART]


def test_a_claim_that_can_not_be_parsed_spares_all(s3: MemoryS3) -> None:
    made = reaper(s3)
    s3.opened(PART)
    s3.objects["x/_committing.json"] = b"{"
    text = made.abort_stale()
    assert text is not None
    assert "x/_committing.json" in text
    assert left_open(s3) == [PART]


def test_no_right_to_read_is_needed_where_nothing_is_claimed(s3: MemoryS3) -> None:
    made = reaper(s3)
    s3.opened(PART)
    s3.before = no_reading
    assert made.abort_stale() is None
    assert left_open(s3) == []


def test_nor_by_the_run_that_holds_the_claim(s3: MemoryS3) -> None:
    made = reaper(s3)
    mine = s3.opened(PART)
    claim(s3, mine)
    s3.opened("x/part-0001-0001.csv")
    s3.before = no_reading
    assert made.abort_stale(keep={mine.upload_id}) is None
    assert left_open(s3) == [PART]


@pytest.mark.parametrize("take_over", [True, False])
def test_probes_of_dead_runs_go_with_their_uploads(s3: MemoryS3, take_over: bool) -> None:
    dead = ["x/_mzs3_dead", PART]
    for key in dead:
        s3.opened(key)
    made = reaper(s3, take_over=take_over)
    s3.opened("x/_mzs3_of_a_run_that_lives")
    assert made.abort_stale() is None
    left = [] if take_over else dead
    assert left_open(s3) == [*left, "x/_mzs3_of_a_run_that_lives"]


class DyingTask:
    """A clock, and a task that opens an upload between its ticks 3 and 6."""

    def __init__(self, s3: MemoryS3, monkeypatch: pytest.MonkeyPatch, tick_s: float = 1.0) -> None:
        self._s3 = s3
        self._tick_s = tick_s
        self.now = 0.0
        self.waits = 0
        monkeypatch.setattr(upload_reaper, "time", self)
        monkeypatch.setattr(upload_reaper, "Event", lambda: self)

    def monotonic(self) -> float:
        self.now += self._tick_s
        return self.now

    def wait(self, _: float) -> None:
        self.waits += 1
        if 3 < self.now / self._tick_s < 6:
            self._s3.opened(PART)


def test_an_upload_that_a_dying_task_opens_late_is_swept(
    s3: MemoryS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = DyingTask(s3, monkeypatch, tick_s=0.4)
    assert reaper(s3).abort_until_idle(ended) is None
    assert left_open(s3) == []
    last_opened = 5 * 0.4
    assert task.now >= last_opened + upload_reaper._QUIET_S


def test_an_upload_that_a_task_opens_after_a_long_pause_is_swept(
    s3: MemoryS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = DyingTask(s3, monkeypatch)
    monkeypatch.setattr(clock, "wait", lambda _: None)
    looks: list[float] = []

    def running() -> bool:
        looks.append(clock.now)
        if len(looks) == 6:
            s3.opened(PART)
        return len(looks) < 6

    assert reaper(s3).abort_until_idle(running) is None
    assert looks[5] > 2 * upload_reaper._QUIET_S
    assert left_open(s3) == []


@pytest.mark.parametrize(
    ("running", "reason"),
    [
        (None, "Spark does not tell whether all tasks that opened uploads have ended"),
        (True, "tasks still ran, or opened uploads, after 30 s"),
    ],
)
def test_tasks_that_may_still_run_are_spoken_of(
    s3: MemoryS3, monkeypatch: pytest.MonkeyPatch, running: bool | None, reason: str
) -> None:
    clock = DyingTask(s3, monkeypatch)
    text = reaper(s3).abort_until_idle(lambda: running)
    assert text is not None
    assert f"{reason}. Open uploads may be left" in text
    assert "aws s3api list-multipart-uploads --bucket b --prefix x/" in text
    assert left_open(s3) == []
    assert (clock.now > upload_reaper._MAX_S) == bool(running)


@pytest.mark.parametrize("speculative", [True, False])
def test_attempts_that_were_lost_are_waited_for_after_the_commit(
    s3: MemoryS3, monkeypatch: pytest.MonkeyPatch, speculative: bool
) -> None:
    task = DyingTask(s3, monkeypatch)
    made = reaper(s3)
    if not speculative:
        s3.opened(PART)
        assert made.abort_stale() is None
    assert made.abort_after_commit(speculative=speculative) is None
    assert left_open(s3) == []
    assert task.now > 6


def test_nothing_is_waited_for_where_no_attempt_was_lost(
    s3: MemoryS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.opened(PART)  # of an interrupted run
    task = DyingTask(s3, monkeypatch)
    made = reaper(s3, take_over=True)
    assert made.abort_stale() is None
    assert made.abort_after_commit(speculative=False) is None
    assert left_open(s3) == []
    assert task.waits == 0


def test_without_the_permission_to_look_it_says_what_may_be_left(s3: MemoryS3) -> None:
    def before(action: str, key: str) -> None:
        if action == "ListMultipartUploads":
            raise failure("AccessDenied")

    s3.before = before
    made = reaper(s3)
    for text in (made.abort_stale(), made.abort_until_idle(ended)):
        assert text is not None
        assert "s3:ListBucketMultipartUploads" in text
        assert "aws s3api list-multipart-uploads --bucket b --prefix x/" in text


def test_a_store_that_lists_the_uploads_of_a_bucket_alone_is_asked_for_those(
    s3: MemoryS3,
) -> None:
    s3.lists_uploads_by_prefix = False
    made = reaper(s3)
    s3.opened(PART)
    s3.opened("y/part-0000-0001.csv")
    assert made.abort_stale() is None
    assert left_open(s3) == ["y/part-0000-0001.csv"]


def test_a_store_that_does_not_list_uploads_is_not_taken_for_clean(s3: MemoryS3) -> None:
    s3.lists_uploads = False
    text = reaper(s3).abort_until_idle(ended)
    assert text is not None
    assert "the store does not list open uploads" in text
