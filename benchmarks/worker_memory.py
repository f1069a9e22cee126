"""The memory of Spark's Python workers, as Linux counts it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

INTERVAL_S = 0.25


class WorkerMemory:
    """The largest resident set any Python worker of this process has had so far, in bytes.

    Pages that workers share with the daemon they were forked from count in full.
    """

    def __init__(self) -> None:
        self.peak = 0

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Look at the workers until the context ends."""
        done = threading.Event()
        thread = threading.Thread(target=self._watch, args=(done,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _watch(self, done: threading.Event) -> None:
        while not done.wait(INTERVAL_S):
            self.peak = max([self.peak, *(_peak_bytes(pid) for pid in _workers())])


def _workers() -> Iterator[int]:
    """The process ids of pyspark daemons and workers among this process's descendants."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # The name, in brackets, may hold anything; the parent is the second field after.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
    for pid in parents:
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            is_worker = b"pyspark.daemon" in command or b"pyspark.worker" in command
            if is_worker and _descends(pid, os.getpid(), parents):
                yield pid


def _descends(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != ancestor:
        pid = parents[pid]
    return pid == ancestor


def _peak_bytes(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0
