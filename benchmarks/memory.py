"""The memory of a Spark driver and of its Python workers, and what all of them compute."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

INTERVAL_S = 0.1


class WorkerMemory:
    """The largest resident set any Python worker of this process has had so far, in bytes.

    Pages that workers share with the daemon they were forked from count in full.
    """

    def __init__(self) -> None:
        self.peak = 0

    def watched(self) -> contextlib.AbstractContextManager[None]:
        """Look at the workers until the context ends."""
        return _repeated(self._look)

    def _look(self) -> None:
        workers = _descendants(b"pyspark.daemon", b"pyspark.worker")
        self.peak = max([self.peak, *(_status_bytes(pid, "VmHWM:") for pid in workers)])


class DriverMemory:
    """The resident bytes of this process and of its Spark driver's JVM."""

    def __init__(self) -> None:
        # Executors are of another class.
        jvm = next(_descendants(b"org.apache.spark.deploy.SparkSubmit"), None)
        if jvm is None:
            raise SystemExit("the driver's Java process was not found")
        self._pids = {"Python": os.getpid(), "JVM": jvm}
        self._peak: dict[str, int] = {}

    @contextlib.contextmanager
    def growth(self) -> Iterator[dict[str, int]]:
        """By how much each has grown at most, once the context has ended."""
        grown: dict[str, int] = {}
        before = self._peak = self._now()
        with _repeated(self._look):
            yield grown
        grown.update({name: self._peak[name] - before[name] for name in before})

    def _now(self) -> dict[str, int]:
        return {name: _status_bytes(pid, "VmRSS:") for name, pid in self._pids.items()}

    def _look(self) -> None:
        self._peak = {name: max(self._peak[name], now) for name, now in self._now().items()}


class DriverPeak:
    """The most that this process had resident, and that its JVM had in its heap, garbage too."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark.sparkContext._jvm
        beans = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
        self._pools = [pool for pool in beans if pool.getType().name() == "HEAP"]

    def since_last(self) -> tuple[int, int]:
        """Both in bytes, since this was called before."""
        heap = sum(pool.getPeakUsage().getUsed() for pool in self._pools)
        resident = _status_bytes(os.getpid(), "VmHWM:")
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        for pool in self._pools:
            pool.resetPeakUsage()
        return resident, heap


def processor_seconds(word: bytes = b"") -> float:
    """What this process, those below it and those that they waited for have computed so far; with
    a `word`, of those below it whose command has the word."""
    ticks = 0
    for pid in (*([] if word else [os.getpid()]), *_descendants(word)):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def _repeated(look: Callable[[], None]) -> Iterator[None]:
    """Looks again and again, in a thread, until the context ends."""
    done = threading.Event()

    def run() -> None:
        while not done.wait(INTERVAL_S):
            look()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _descendants(*words: bytes) -> Iterator[int]:
    """The ids of the processes below this one whose command has one of the words."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # The name, in brackets, may hold anything; the parent is the second field after.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
    for pid in parents:
        with contextlib.suppress(OSError):
            above = parents[pid]
            while above in parents and above != os.getpid():
                above = parents[above]
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if above == os.getpid() and any(word in command for word in words):
                yield pid


def _status_bytes(pid: int, name: str) -> int:
    """A size in what Linux says of the process; 0 once it has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return 0
