"""A Spark cluster of processes on loopback: a standalone master, and two workers that may die."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import spark_servers

# Spark runs a second attempt of a task only on another host than the first, and calls hosts by
# their address. All of 127/8 is loopback on Linux.
HOSTS = ("127.0.0.1", "127.0.0.2")


class Cluster:
    """A running cluster: the URL of its master, that of the master's page, the folder of its logs.

    `environments` has what executors find in their environment, by the worker's host.
    """

    def __init__(
        self,
        folder: Path,
        stack: contextlib.ExitStack,
        environments: Mapping[str, Mapping[str, str]],
    ) -> None:
        self.folder = folder
        self._stack = stack
        self._environments = environments
        self._workers: dict[str, spark_servers.Server] = {}
        self._started = 0
        server = stack.enter_context(spark_servers.master(folder))
        self.master, self.page = server.url, server.page
        self.revive()

    def revive(self) -> None:
        """Starts a worker on each host that has none."""
        for host in HOSTS:
            if host not in self._workers:
                self._started += 1
                name, environment = f"worker-{self._started}", self._environments.get(host)
                server = spark_servers.worker(self.folder, name, self.master, host, environment)
                self._workers[host] = self._stack.enter_context(server)

    @property
    def pages(self) -> list[str]:
        """The web pages of the master and of the workers."""
        return [self.page, *(worker.page for worker in self._workers.values())]

    def executors(self) -> list[int]:
        """Their process ids; those of all applications."""
        return [pid for host in self._workers for pid in self._executors(host)]

    def kill_executors(self) -> int:
        """Kill every executor, as machines that die would; how many there were.

        The workers that had started them start others.
        """
        executors = self.executors()
        for pid in executors:
            os.kill(pid, signal.SIGKILL)
        return len(executors)

    def kill_worker(self, host: str) -> None:
        """Kill the worker of a host with its executors and their Python, as if it lost power."""
        worker = self._workers.pop(host).pid
        for pid in [worker, *all_below(worker)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill_workers(self) -> None:
        """Kill every worker and its executors: nothing is left that runs a task."""
        for host in list(self._workers):
            self.kill_worker(host)

    def _executors(self, host: str) -> list[int]:
        # A JVM has other children too, while it starts one.
        below = _children(self._workers[host].pid)
        return [pid for pid in below if b"CoarseGrainedExecutorBackend" in _command(pid)]


@contextlib.contextmanager
def standalone_cluster(
    folder: Path, environments: Mapping[str, Mapping[str, str]] | None = None
) -> Iterator[Cluster]:
    """A master and two workers of one core each, until the block ends; logs go to `folder`."""
    with contextlib.ExitStack() as stack:
        yield Cluster(folder, stack, environments or {})


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""  # it has ended


def all_below(pid: int) -> list[int]:
    """A process's children, and theirs."""
    return [one for child in _children(pid) for one in (child, *all_below(child))]


def executors_below(pid: int) -> list[int]:
    """The executors of a cluster that a driver has made itself, whose process has this id."""
    return [one for one in all_below(pid) if b"CoarseGrainedExecutorBackend" in _command(one)]


def _children(pid: int) -> list[int]:
    children = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            children += [int(child) for child in task.read_text().split()]
    return children
