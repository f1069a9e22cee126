"""Drivers and executors killed at random, and requests that fail: nothing is lost or doubled.

A cluster of processes with speculation on exports, ingests, writes and compacts a shard, round
after round. MZS3_KILLS is the number of kills, MZS3_FAULTY_ROUNDS that of rounds in which one in
20 requests to S3 fails, some after S3 has done what was asked; MZS3_KILLS_SEED draws others.
Counts are printed. A round with the kill of a driver takes about 30 s, others about 10 s.
"""

from __future__ import annotations

import json
import os
import queue
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import SUPPORT
from support.processes import session_members, wait_for_end
from support.s3.faulty import FaultyS3, Flaky, Request
from support.spark.standalone import Cluster, all_below, standalone_cluster
from support.work_until_killed import ANSWER, GROUPS

KILLS = int(os.environ.get("MZS3_KILLS", "8"))
FAULTY_ROUNDS = int(os.environ.get("MZS3_FAULTY_ROUNDS", "4"))
SEED = int(os.environ.get("MZS3_KILLS_SEED", "1"))
pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.timeout(900 + 240 * (KILLS + FAULTY_ROUNDS)),
]

SCRIPT = SUPPORT / "work_until_killed.py"
DEADLINE_S = 400
WORK = ("export", "ingest", "shard", "compact")
MANIFEST = "export/_manifest.json"
CHANGES = {"CompleteMultipartUpload", "PutObject", "DeleteObject"}
OBJECTS_AT_ONCE, IDS = 3, 50
WHOLE = [GROUPS, GROUPS * (GROUPS - 1) // 2]
SPARK = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.locality.wait": "0s",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.efficiency.enabled": "false",
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "100ms",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    # Little is computed; to compile it would take longer.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "OFF",
}


class Driver:
    """The process that does the work."""

    def __init__(self, parameters: dict[str, str], endpoint: str, bucket: str) -> None:
        argument = {"parameters": parameters, "endpoint": endpoint, "bucket": bucket}
        self._process = subprocess.Popen(
            [sys.executable, str(SCRIPT), json.dumps(argument)],
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        assert self._answer() == {"ready": True}

    def do(self, work: str, version: int) -> dict[str, Any] | None:
        """What came of it; None if the process was killed."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": work, "version": version}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return None
        return self._answer()

    def kill(self) -> None:
        """SIGKILL to Python and to the JVM."""
        os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Returns once all of it is gone."""
        if self._process.poll() is None:
            self.kill()
        self._process.wait(DEADLINE_S)
        wait_for_end(session_members(self._process.pid), DEADLINE_S)

    def _answer(self) -> dict[str, Any] | None:
        return self._answers.get(timeout=DEADLINE_S)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(ANSWER):
                self._answers.put(json.loads(line.removeprefix(ANSWER)))
        self._answers.put(None)


class Bucket:
    """The bucket, past the server that fails, as its readers see it."""

    def __init__(self, s3: Any, name: str) -> None:
        self.s3 = s3
        self.name = name
        s3.create_bucket(Bucket=name)

    def read(self, key: str) -> bytes | None:
        try:
            found: bytes = self.s3.get_object(Bucket=self.name, Key=key)["Body"].read()
        except self.s3.exceptions.NoSuchKey:
            return None
        return found

    def exported(self) -> Counter[tuple[str, str]] | None:
        """Each row's group and version, how often the manifest's files have it; None without."""
        while (content := self.read(MANIFEST)) is not None:
            keys = [e["url"].split("/", 3)[3] for e in json.loads(content)["entries"]]
            bodies = [body for body in map(self.read, keys) if body is not None]
            if len(bodies) == len(keys):
                lines = (line for body in bodies for line in body.decode().splitlines())
                return Counter(tuple(line.split(",")[:2]) for line in lines)  # type: ignore[misc]
            # A reader who comes late finds a file missing, and reads the manifest again.
            assert content != self.read(MANIFEST), f"of {sorted(keys)} some are missing"
        return None

    def open_uploads(self, prefix: str = "") -> list[str]:
        found = self.s3.list_multipart_uploads(Bucket=self.name, Prefix=prefix).get("Uploads", [])
        return [upload["Key"] for upload in found]


class Trial:
    """Rounds of work, and what readers see before, meanwhile and afterwards."""

    def __init__(
        self, cluster: Cluster, s3: Any, proxy: FaultyS3, folder: Path, name: str
    ) -> None:
        self._cluster = cluster
        self._proxy = proxy
        self._bucket = Bucket(s3, name)
        parameters = {
            **SPARK,
            "spark.master": cluster.master,
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
        }
        self._start: Callable[[], Driver] = lambda: Driver(parameters, proxy.endpoint, name)
        self._driver = self._start()
        self._chance = random.Random(SEED)
        self._version = 0
        self._whole = {"export": 0, "shard": 0}  # the versions that readers may see
        self._objects = 0
        self._ingested = 0
        self._requests: dict[str, int] = {}
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        for work in WORK:
            self.undisturbed(work)

    def undisturbed(self, work: str) -> None:
        """What is done is there, once, and the reader of each request saw no mixture."""
        self._next(work)
        self._proxy.reset()
        self._proxy.watch = self._see
        answer = self._driver.do(work, self._version)
        self._requests[work] = len(self._proxy.seen)
        assert answer is not None and not answer.keys() & {"error", "defect"}, answer
        self._done(work)

    def disturbed(self, work: str) -> None:
        """A driver or an executor dies at a random request; then all is done again."""
        self._next(work)
        at = self._chance.randint(1, self._requests[work])
        victim = self._chance.choice(("driver", "executor"))
        seen = 0
        dead: list[int] = []

        def kill(request: Request) -> None:
            nonlocal seen
            self._see(request)
            with self._lock:
                seen += 1
                if seen < at or dead:
                    return
                executors = self._cluster.executors()
                if victim == "driver":
                    dead.extend(one for pid in executors for one in (pid, *all_below(pid)))
                    dead.append(0)  # itself
                    self._driver.kill()
                elif executors:
                    pid = self._chance.choice(executors)
                    dead.extend((pid, *all_below(pid)))
                    os.kill(pid, signal.SIGKILL)

        self._proxy.reset()
        self._proxy.watch = kill
        answer = self._driver.do(work, self._version)
        self._proxy.watch = self._see
        # It may have done with fewer requests than the time before.
        self.counts[f"{work}: {victim} killed" if dead else f"{work}: nothing killed"] += 1
        self._count(work, answer)
        if victim == "driver" and dead:
            self._driver.end()
            # Executors of a dead driver go on until they notice.
            wait_for_end((pid for pid in dead if pid), DEADLINE_S)
            self._driver = self._start()
        self.after(work)

    def faulty(self, work: str, flaky: Flaky) -> None:
        """One in so many requests fails; then all is done again without."""
        self._next(work)
        self._proxy.reset()
        self._proxy.watch = self._see
        self._proxy.fault = flaky
        answer = self._driver.do(work, self._version)
        self._proxy.fault = lambda _: None
        self._count(work, answer)
        self.after(work)

    def after(self, work: str) -> None:
        """Readers see all that was before or all that is new; the next run makes it good."""
        self._look()
        self.undisturbed(work)
        self._look()
        left = self._bucket.open_uploads("export/")
        if work == "export" and left:
            self.problems.append(f"round {self._version}: open uploads {left}")

    def end(self) -> None:
        """After a week, a compaction has aborted what killed runs of the shard left open."""
        answer = self._driver.do("compact_later", self._version)
        assert answer is not None and "uploads" in answer, answer
        self.counts["uploads of a shard that were left to a compaction"] = answer["uploads"]
        if left := self._bucket.open_uploads():
            self.problems.append(f"at the end: open uploads {left}")
        self._driver.end()

    def _next(self, work: str) -> None:
        self._version += 1
        if work == "ingest":
            for _ in range(OBJECTS_AT_ONCE):
                ids = range(self._objects * IDS, (self._objects + 1) * IDS)
                body = "".join(f"{one}\n" for one in ("id", *ids)).encode()
                key = f"raw/{self._objects:06}.csv"
                self._bucket.s3.put_object(Bucket=self._bucket.name, Key=key, Body=body)
                self._objects += 1

    def _done(self, work: str) -> None:
        if work == "ingest":
            self._ingested = self._objects
        elif work in self._whole:
            self._whole[work] = self._version

    def _count(self, work: str, answer: dict[str, Any] | None) -> None:
        if answer is None:
            return
        if "defect" in answer:
            self.problems.append(f"round {self._version}, {work}: {answer['defect']}")
        elif "error" in answer:
            self.counts[f"{work}: an error"] += 1
        else:
            self.counts[f"{work}: went on"] += 1

    def _see(self, request: Request) -> None:
        """The reader of the export, at a request that changes what is visible."""
        if request.action not in CHANGES or "/export/" not in request.key:
            return
        self.counts["looks at the export"] += 1
        try:
            self._look_at_export()
        except Exception as exc:
            self.problems.append(f"round {self._version}, {request.action}: {exc!r}")

    def _look_at_export(self) -> None:
        rows = self._bucket.exported()
        if rows is None:
            assert not self._whole["export"], "there is no manifest"
            return
        [version] = {version for _, version in rows}
        assert self._whole["export"] <= int(version) <= self._version
        self._require_whole("the export", Counter(int(k) for k, _ in rows.elements()))

    def _require_whole(self, what: str, groups: Counter[int]) -> None:
        lost = GROUPS - len(groups)
        doubled = groups.total() - len(groups)
        self.counts["rows lost"] += lost
        self.counts["rows doubled"] += doubled
        assert (lost, doubled) == (0, 0), f"{what} lacks {lost} rows, {doubled} are doubled"

    def _look(self) -> None:
        """All three readers."""
        try:
            self._look_at_export()
            found = self._driver.do("look", self._version)
            assert found is not None and "shard" in found, found
            [(version, rows)] = found["shard"].items()
            assert rows == WHOLE
            assert self._whole["shard"] <= int(version) <= self._version
            names = {f"{number:06}.csv": IDS for number in range(self._objects)}
            there = found["objects"]
            assert there.items() <= names.items(), there
            assert len(there) >= self._ingested
            assert found["ids"] == IDS * len(there)
        except (AssertionError, ValueError) as exc:
            self.problems.append(f"round {self._version}: {exc!r}")


@pytest.fixture
def proxy(s3_endpoint: str) -> Iterator[FaultyS3]:
    with FaultyS3(s3_endpoint) as server:
        yield server


@pytest.fixture
def trial(s3: Any, proxy: FaultyS3, tmp_path: Path, request: Any, capsys: Any) -> Iterator[Trial]:
    with standalone_cluster(tmp_path / "cluster") as cluster:
        made = Trial(cluster, s3, proxy, tmp_path, request.node.name.replace("_", "-")[-40:])
        try:
            yield made
        finally:
            made._driver.end()
            with capsys.disabled():
                print(f"\n{request.node.name}, seed {SEED}:")
                for name, count in sorted(made.counts.items()):
                    print(f"  {name}: {count}")


def test_random_kills_lose_and_double_nothing(trial: Trial) -> None:
    chance = random.Random(SEED)
    for number in range(KILLS):
        trial.disturbed(WORK[number] if number < len(WORK) else chance.choice(WORK))
        assert trial.problems == []
    trial.end()
    assert trial.problems == []


def test_requests_that_fail_lose_and_double_nothing(trial: Trial) -> None:
    flaky = Flaky(SEED, 0.05)
    for _ in range(FAULTY_ROUNDS):
        for work in WORK:
            trial.faulty(work, flaky)
            assert trial.problems == []
    trial.counts["requests that failed"] = flaky.befallen.total()
    assert flaky.befallen.total() > 0
    trial.end()
    assert trial.problems == []
