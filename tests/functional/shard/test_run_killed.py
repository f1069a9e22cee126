"""Runs and compactions of a shard killed at random requests, and what is run after that.

One kill of a run; more, and of compactions, are `long`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import select
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support import SUPPORT
from support.processes import session_members
from support.s3.faulty import FaultyS3, Request
from support.s3.opened import state_of
from support.shard.killed import do

from dbt.adapters.mzs3.shard.read.rows import read_shard
from dbt.adapters.mzs3.shard.state.store import STATE
from dbt.adapters.mzs3.store.location import parse_location

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]

SCRIPT = SUPPORT / "shard/killed.py"
KILLS = 7
DEADLINE_S = 300
_numbers = itertools.count()
FIRST, LATER = (Counter(range(300)), Counter(range(100, 400)))
AFTER = {"diff": LATER, "append": FIRST + Counter(range(50)), "compact": LATER}


class Trial:
    """A shard that was written once, and before a compaction twice."""

    def __init__(self, spark: Any, s3: Any, connection: Any, proxy: FaultyS3, what: str) -> None:
        self.spark, self.s3, self.connection = spark, s3, connection
        self.proxy, self.what = proxy, what
        self.uri = f"s3://killed-shards/{next(_numbers)}"
        self.place = parse_location(self.uri)
        proxy.reset()
        for before in ("first", "diff") if what == "compact" else ("first",):
            self.do(before)
        proxy.reset()

    def do(self, what: str) -> Any:
        """A run or compaction that nobody kills."""
        return do(self.spark, self.proxy.endpoint, self.uri, what)

    def rows(self) -> Counter[int]:
        found = read_shard(self.spark, self.connection, self.place).collect()
        return Counter(row[0] for row in found)

    def killed(self, fatal: int, *, whole_machine: bool) -> Request:
        """A process that dies in its so-manieth request; S3 hears of that unless the machine dies
        with all that runs on it."""
        held: list[Request] = []
        lock, reached = threading.Lock(), threading.Event()

        def kill_at_the_moment(request: Request) -> None:
            with lock:
                held.append(request)
                if len(held) == fatal + 1:
                    kill(process.pid, workers=whole_machine)
                    reached.set()

        arguments = [sys.executable, str(SCRIPT), self.proxy.endpoint, self.uri, self.what]
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            assert process.stdout is not None
            assert process.stdin is not None
            assert process.stdout.readline() == "ready\n"
            self.proxy.watch = kill_at_the_moment
            self.proxy.deny = lambda request: (
                whole_machine and len(held) > fatal and request is held[fatal]
            )
            process.stdin.write("\n")
            process.stdin.flush()
            process.wait(DEADLINE_S)
            wait_for_the_end(process.pid)
        finally:
            kill(process.pid, workers=True)
            with contextlib.suppress(BrokenPipeError):
                process.communicate()
            self.proxy.reset()
        assert reached.is_set(), f"it ended with {process.returncode} after {len(held)} requests"
        return held[fatal]

    def objects(self) -> set[str]:
        found = self.s3.list_objects_v2(Bucket=self.place.bucket, Prefix=self.place.prefix)
        return {one["Key"].removeprefix(self.place.prefix) for one in found.get("Contents", [])}

    def uploads(self) -> list[str]:
        found = self.s3.list_multipart_uploads(Bucket=self.place.bucket, Prefix=self.place.prefix)
        return [one["Key"] for one in found.get("Uploads", [])]


def kill(session: int, *, workers: bool) -> None:
    """SIGKILL to Python and the JVM at once; Python workers may be left to find out."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)
    for pid in session_members(session) if workers else []:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_for_the_end(session: int) -> None:
    """Until Python workers are gone too."""
    while left := session_members(session):
        with contextlib.suppress(ProcessLookupError):
            process = os.pidfd_open(left[0])
            gone, _, _ = select.select([process], [], [], DEADLINE_S)
            os.close(process)
            assert gone, f"still alive: {left}"


@pytest.fixture(scope="module")
def trial(
    spark: Any, s3: Any, connection: Any, s3_endpoint: str
) -> Iterator[Callable[..., Trial]]:
    """`trial(what)`: a shard to which that is to be done."""
    s3.create_bucket(Bucket="killed-shards")
    with FaultyS3(s3_endpoint) as proxy:
        yield lambda what: Trial(spark, s3, connection, proxy, what)


@pytest.fixture(scope="module")
def requests(trial: Callable[..., Trial]) -> Callable[[str], int]:
    """How many requests what is not killed sends."""
    counts: dict[str, int] = {}

    def count(what: str) -> int:
        if what not in counts:
            undisturbed = trial(what)
            undisturbed.do(what)
            assert undisturbed.rows() == AFTER[what]
            counts[what] = len(undisturbed.proxy.seen)
        return counts[what]

    return count


@pytest.mark.parametrize(
    ("what", "number"),
    [
        ("append", 0),
        *(
            pytest.param(what, number, marks=pytest.mark.long)
            for what in AFTER
            for number in range(KILLS)
            if (what, number) != ("append", 0)
        ),
    ],
)
def test_no_row_is_lost_and_none_doubled(
    trial: Callable[..., Trial], requests: Callable[[str], int], what: str, number: int
) -> None:
    count = requests(what)
    shard = trial(what)
    before = shard.rows()
    assert before == (LATER if what == "compact" else FIRST)
    # The kills are spread over all requests, and the same in every run of the tests.
    share = (number + random.Random(f"{what} {number}").random()) / KILLS
    if number == 0:
        share = 1 - share  # near the commit, for the one kill that is not long
    died_in = shard.killed(int(share * count), whole_machine=number % 2 == 1)

    found = shard.rows()
    assert found in (before, AFTER[what])
    left = f"{len(shard.uploads())} uploads and {len(shard.objects())} objects"
    print(
        f"{what}: died in {died_in.action} {died_in.key}, {int(share * count)} of {count}; {left}"
    )
    shard.do(what)
    expected = found + Counter(range(50)) if what == "append" else AFTER[what]
    assert shard.rows() == expected
    shard.do("compact")
    assert shard.rows() == expected
    state = state_of(shard.s3, shard.place).read()
    assert state is not None
    assert shard.objects() == {STATE, *state.state.file_names}
    assert shard.uploads() == []
