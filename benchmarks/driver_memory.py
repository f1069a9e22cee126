"""The memory of a Spark driver, Python and JVM, as Linux counts it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

INTERVAL_S = 0.1


class DriverMemory:
    """The resident bytes of this process and of its Spark driver's JVM."""

    def __init__(self) -> None:
        self._pids = {"Python": os.getpid(), "JVM": _driver_jvm()}
        self.peak = self.now()

    def now(self) -> dict[str, int]:
        """The resident bytes of each."""
        return {name: _resident(pid) for name, pid in self._pids.items()}

    @contextlib.contextmanager
    def growth(self) -> Iterator[dict[str, int]]:
        """By how much each has grown at most, once the context has ended."""
        grown: dict[str, int] = {}
        done = threading.Event()
        before = self.peak = self.now()
        thread = threading.Thread(target=self._watch, args=(done,), daemon=True)
        thread.start()
        try:
            yield grown
        finally:
            done.set()
            thread.join()
            grown.update({name: self.peak[name] - before[name] for name in before})

    def _watch(self, done: threading.Event) -> None:
        while not done.wait(INTERVAL_S):
            self.peak = {name: max(self.peak[name], now) for name, now in self.now().items()}


def _driver_jvm() -> int:
    """The Java process that this one has started; executors are of another class."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            if b"org.apache.spark.deploy.SparkSubmit" in command and _is_ours(int(entry.name)):
                return int(entry.name)
    raise SystemExit("the driver's Java process was not found")


def _is_ours(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return False


def _resident(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0
