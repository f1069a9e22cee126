"""Two runs that export to one location at the same time: one comes through, whole."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from support.export.killed import export
from support.export.onlooker import MANIFEST, Location
from support.s3.faulty import FaultyS3, Request

from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.export.export import CopyResult

pytestmark = pytest.mark.spark

MEGABYTES = 3
WAIT_S = 120
MODES = ("fail", "overwrite", "resume")


class Run:
    """One of the two, on a thread, with a server of its own between it and S3."""

    def __init__(self, spark: Any, s3: FaultyS3, uri: str, mode: str, text: str) -> None:
        self.s3 = s3
        self.text = text
        self.result: CopyResult | None = None
        self.error = ""
        self.ended = threading.Event()
        self._arguments = (spark, s3.endpoint, uri, mode, MEGABYTES, text)
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()

    def at(self, step: Callable[[Request], bool], do: Callable[[], object]) -> threading.Event:
        """Do something before S3 hears of the first such request; set once that was done."""
        reached, lock, others = threading.Event(), threading.Lock(), self.s3.watch

        def watch(request: Request) -> None:
            others(request)
            if step(request):
                with lock:  # more of the kind wait with it
                    if not reached.is_set():
                        do()
                        reached.set()

        self.s3.watch = watch
        return reached

    def _run(self) -> None:
        try:
            self.result = export(*self._arguments)
        except Mzs3Error as exc:
            self.error = str(exc)
        finally:
            self.ended.set()


def claims(request: Request) -> bool:
    return request.action == "PutObject" and request.key.endswith("_committing.json")


def has_looked_around(request: Request) -> bool:
    return request.action == "AbortMultipartUpload" and "_mzs3_" in request.key


def uploads(request: Request) -> bool:
    return request.action == "UploadPart"


def completes(request: Request) -> bool:
    return request.action == "CompleteMultipartUpload"


def deletes_an_old_file(request: Request) -> bool:
    return request.action == "DeleteObject" and request.key.endswith(".csv")


@pytest.fixture
def location(s3: Any, bucket: str) -> Location:
    return Location(s3, f"{bucket}-shared")


@pytest.fixture
def two(
    spark: Any, s3_endpoint: str, location: Location
) -> Iterator[Callable[[str], tuple[Run, Run]]]:
    """Two runs of a mode that have not begun, over an older export if they overwrite."""

    def is_gone(request: Request) -> bool | str:
        # S3's answer to a part of an upload that was aborted; moto's is an internal error.
        is_open = request.query.get("uploadId", [""])[0] in location.open_uploads()
        return "NoSuchUpload" if uploads(request) and not is_open else False

    with ExitStack() as stack:
        first, second = (stack.enter_context(FaultyS3(s3_endpoint)) for _ in range(2))
        first.deny = second.deny = is_gone

        def prepare(mode: str) -> tuple[Run, Run]:
            if mode == "overwrite":
                export(spark, s3_endpoint, location.uri, mode, 1, "old")
            return (
                Run(spark, first, location.uri, mode, "first"),
                Run(spark, second, location.uri, mode, "second"),
            )

        yield prepare


def require_whole(location: Location, winner: Run) -> None:
    """The export of one of the runs, which says so, and nothing else."""
    assert winner.result is not None, winner.error
    files = location.follow_manifest()
    assert files is not None
    filler = hashlib.md5(f"{winner.text}0".encode()).hexdigest()
    assert any(f"\n0,{filler}" in f"\n{(location.read(key) or b'').decode()}" for key in files)
    assert sorted(location.listed()) == sorted([MANIFEST, *files])
    assert not location.open_uploads()


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("meeting", [has_looked_around, claims])
def test_one_of_two_comes_through(
    two: Callable[[str], tuple[Run, Run]],
    location: Location,
    mode: str,
    meeting: Callable[[Request], bool],
) -> None:
    runs = two(mode)
    both = threading.Barrier(2)
    for run in runs:
        run.at(meeting, lambda: both.wait(WAIT_S))
        run.start()
    for run in runs:
        run.join()
    [winner] = [run for run in runs if run.result is not None]
    [loser] = [run for run in runs if run is not winner]
    assert re.search(
        "another run is committing|is not empty|another run has committed|NoSuchUpload",
        loser.error,
    )
    assert loser.error.endswith("Nothing of this export is visible, and no upload is left open")
    require_whole(location, winner)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["fail", "overwrite"])
def test_a_run_that_fails_while_another_commits_leaves_it_alone(
    two: Callable[[str], tuple[Run, Run]], location: Location, mode: str
) -> None:
    first, second = two(mode)
    is_uploading, is_swept = threading.Event(), threading.Event()

    def let_the_second_begin() -> None:
        second.start()
        is_uploading.wait(WAIT_S)

    def be_overtaken() -> None:
        is_uploading.set()
        is_swept.wait(WAIT_S)

    swept: list[Request] = []

    def sweeps(request: Request) -> bool:
        if request.action == "AbortMultipartUpload" and "_mzs3_" not in request.key:
            swept.append(request)
        return bool(swept)

    def sweep() -> None:
        # At once, so that the second goes on when it is done.
        found = swept[0]
        key = found.key.removeprefix(f"/{location.bucket}/")
        upload = {"Key": key, "UploadId": found.query["uploadId"][0]}
        location.s3.abort_multipart_upload(Bucket=location.bucket, **upload)
        is_swept.set()

    second.at(uploads, be_overtaken)
    first.at(claims, let_the_second_begin)
    first.at(sweeps, sweep)
    held = first.at(completes, lambda: second.ended.wait(WAIT_S))
    first.start()
    first.join()
    second.join()
    assert held.is_set()
    assert "failed: NoSuchUpload" in second.error
    require_whole(location, first)


def test_a_slow_run_that_was_taken_for_dead_deletes_nothing_new(
    two: Callable[[str], tuple[Run, Run]], location: Location
) -> None:
    first, second = two("overwrite")

    def let_the_second_run() -> None:
        second.start()
        second.ended.wait(WAIT_S)

    late = first.at(deletes_an_old_file, let_the_second_run)
    first.start()
    first.join()
    second.join()
    assert late.is_set()
    assert first.result is not None, first.error
    require_whole(location, second)
