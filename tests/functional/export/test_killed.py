"""The driver killed at random requests, in uploads and in commits, and the run after that.

One kill of 30 MB for each mode, and one more that is `long`; with MZS3_ALL_KILLS=1 in the
environment, 20 of 210 MB.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import SUPPORT
from support.dbt_process import finish, start_dbt
from support.export.killed import export
from support.export.onlooker import MANIFEST, Location, Onlooker, canonical, without_run_id
from support.processes import session_members, wait_for_end
from support.s3.faulty import FaultyS3, Request

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

ALL = bool(os.environ.get("MZS3_ALL_KILLS"))
KILLS = 20 if ALL else 2
MEGABYTES = 210 if ALL else 30
SCRIPT = SUPPORT / "export/killed.py"
DEADLINE_S = 300


class Victim:
    """A driver in a process group of its own, which waits to be sent off."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(SCRIPT), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def begin(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def kill(self, *, workers: bool) -> None:
        """SIGKILL to Python and the JVM at once; Python workers may be left to find out."""
        os.killpg(self._process.pid, signal.SIGKILL)
        for pid in session_members(self._process.pid) if workers else []:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def wait(self) -> int:
        """How the driver ended; all processes below it, Python workers too, are gone by then."""
        ended = self._process.wait(DEADLINE_S)
        while left := session_members(self._process.pid):
            wait_for_end(left, DEADLINE_S)
        return ended

    def __enter__(self) -> Victim:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill(workers=True)
        self._process.communicate()


class Trials:
    """One mode: where exports go, what they start from, and what an undisturbed one does."""

    def __init__(self, mode: str, location: Location, proxy: FaultyS3, spark: Any) -> None:
        self.mode = mode
        self.location = location
        self.proxy = proxy
        self._spark = spark
        self._standby: Victim | None = None
        self.before: dict[str, bytes] = {}
        if mode == "overwrite":
            self._export(max(MEGABYTES // 2, 1), "old")
            self.before = {key: location.read(key) or b"" for key in location.listed()}
        self.old = canonical(location.follow_manifest() or {})
        proxy.reset()
        self.run()
        self.requests = len(proxy.seen)
        self.new = canonical(location.follow_manifest() or {})
        self.manifest = without_run_id(location.read(MANIFEST) or b"")

    def run(self) -> None:
        """The export, in this process."""
        self._export(MEGABYTES, "new")

    def victim(self) -> Victim:
        """A process that makes the same export."""
        arguments = [self.location.uri, self.mode, str(MEGABYTES), "new"]
        victim = self._standby or Victim(self.proxy.endpoint, *arguments)
        self._standby = None
        return victim

    def call_next_victim(self) -> None:
        """Starting Spark takes a while, in which others can work."""
        self._standby = self.victim()

    def onlooker(self) -> Onlooker:
        whole = [self.old, self.new] if self.old else [self.new]
        return Onlooker(self.location, whole, must_exist=bool(self.old))

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, *_: object) -> None:
        if self._standby is not None:
            self._standby.__exit__()
        self.location.reset({})

    def _export(self, megabytes: int, text: str) -> None:
        export(self._spark, self.proxy.endpoint, self.location.uri, self.mode, megabytes, text)


@pytest.fixture(
    scope="module", params=["resume", pytest.param("overwrite", marks=pytest.mark.slow)]
)
def trials(request: Any, s3: Any, proxy: FaultyS3, spark: Any) -> Iterator[Trials]:
    location = Location(s3, f"killed-{request.param}")
    with Trials(request.param, location, proxy, spark) as trials:
        yield trials


def moment_of(kill: int, requests: int) -> int:
    """A random request, the same in every run of the tests; the kills are spread over all."""
    share = requests / KILLS
    return int((kill + random.Random(f"kill {kill}").random()) * share)


@pytest.mark.parametrize(
    "kill", [0, *(pytest.param(number, marks=pytest.mark.long) for number in range(1, KILLS))]
)
def test_a_killed_driver_and_the_run_after_it(trials: Trials, kill: int) -> None:
    proxy, location = trials.proxy, trials.location
    location.reset(trials.before)
    onlooker = trials.onlooker()
    fatal = moment_of(kill, trials.requests)
    # Either the driver dies, and S3 hears of the request that it dies in; or the whole machine
    # does, and S3 does not.
    whole_machine = kill % 2 == 1
    lock, killed = threading.Lock(), threading.Event()
    held: list[Request] = []

    def fatal_one() -> Request | None:
        return held[fatal] if len(held) > fatal else None

    def kill_at_the_moment(request: Request) -> None:
        onlooker.before(request)
        with lock:
            held.append(request)
            if len(held) == fatal + 1:
                victim.kill(workers=whole_machine)
                killed.set()

    with trials.victim() as victim:
        proxy.reset()
        proxy.watch = kill_at_the_moment
        proxy.deny = lambda request: whole_machine and request is fatal_one()
        victim.begin()
        ended = victim.wait()
    assert killed.is_set(), f"the driver ended with {ended} after {len(held)} requests"
    if kill + 1 < KILLS:
        trials.call_next_victim()
    onlooker.look("after the kill")
    left = len(location.open_uploads()), len(location.listed())
    proxy.reset()
    proxy.watch = onlooker.before
    trials.run()
    onlooker.look("at the end")

    died_in = fatal_one()
    assert died_in is not None
    sent = sum(request.action == "UploadPart" for request in proxy.seen)
    print(
        f"{trials.mode}: died in {died_in.action} {died_in.key}, request {fatal + 1} of "
        f"{trials.requests}; left {left[0]} uploads and {left[1]} objects; the next run sent "
        f"{sent} parts; {onlooker.looks} looks"
    )
    assert not onlooker.problems
    assert canonical(location.follow_manifest() or {}) == trials.new
    assert len(location.listed()) == len(trials.new) + 1
    assert not location.open_uploads()
    if trials.mode == "resume":
        assert without_run_id(location.read(MANIFEST) or b"") == trials.manifest


@pytest.mark.slow
def test_ctrl_c_in_the_commit(
    project_folder: Path, faulty: FaultyS3, s3: Any, bucket: str
) -> None:
    location = Location(s3, bucket)
    committing, interrupted = threading.Event(), threading.Event()

    def hold_the_first_file(request: Request) -> None:
        if request.action == "CompleteMultipartUpload":
            committing.set()
            interrupted.wait(DEADLINE_S)

    faulty.watch = hold_the_first_file
    dbt = start_dbt(project_folder, "run")
    assert committing.wait(DEADLINE_S), finish(dbt)
    os.killpg(dbt.pid, signal.SIGINT)
    interrupted.set()
    output = finish(dbt)
    assert dbt.returncode != 0, output
    assert "interrupted by the user" in output
    assert "Traceback" not in output
    assert "30,000 rows, 1 file, 28.8 MB in" in output  # a commit that has begun is finished
    assert sorted(location.listed()) == [MANIFEST, "x/part-0000-0001.csv"]
    assert location.follow_manifest() is not None
    assert not location.open_uploads()
