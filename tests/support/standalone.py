"""A Spark cluster of processes on loopback: a standalone master and two workers."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
# Spark runs a second attempt of a task only on another host than the first, and calls hosts by
# their address. All of 127/8 is loopback on Linux.
HOSTS = ("127.0.0.1", "127.0.0.2")
_STARTED = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(r"Successfully registered with master (\S+)")
_CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
_CONNECTABLE = re.compile(r"Spark Connect server started at: (\S+)")
_START_S = 120


@dataclass
class Cluster:
    """A running cluster: the URL of its master, and the process ids of its workers."""

    master: str
    workers: list[int] = field(default_factory=list)

    def executors(self) -> list[int]:
        """Their process ids; those of all applications."""
        return [pid for worker in self.workers for pid in _executors(worker)]

    def kill_executors(self) -> int:
        """Kill every executor, as machines that die would; how many there were.

        The workers that had started them start others.
        """
        executors = self.executors()
        for pid in executors:
            os.kill(pid, signal.SIGKILL)
        return len(executors)

    def kill_workers(self) -> None:
        """Kill every worker and its executors: nothing is left that runs a task."""
        for pid in [*self.executors(), *self.workers]:
            os.kill(pid, signal.SIGKILL)
        self.workers.clear()


@contextlib.contextmanager
def standalone_cluster(folder: Path) -> Iterator[Cluster]:
    """A master and two workers of one core each, until the block ends; logs go to `folder`."""
    with contextlib.ExitStack() as stack:
        start = "org.apache.spark.deploy.{0}.{1} --host {2} --port 0 --webui-port 0"
        arguments = start.format("master", "Master", HOSTS[0]).split()
        _, master = stack.enter_context(_daemon(arguments, HOSTS[0], _STARTED))
        cluster = Cluster(master)
        for host in HOSTS:
            arguments = start.format("worker", "Worker", host).split()
            arguments += ["--cores", "1", "--memory", "700m", "--work-dir", str(folder / host)]
            daemon = _daemon([*arguments, master], host, _REGISTERED)
            pid, _ = stack.enter_context(daemon)
            cluster.workers.append(pid)
        yield cluster


@contextlib.contextmanager
def connect_server(parameters: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """A Spark Connect server with these settings, until the block ends: its process id and URL."""
    conf = {"spark.connect.grpc.binding.address": HOSTS[0], "spark.connect.grpc.binding.port": "0"}
    settings = [f"--conf={key}={value}" for key, value in {**parameters, **conf}.items()]
    start = ["org.apache.spark.deploy.SparkSubmit", *settings, "--class", _CONNECT]
    start.append("spark-internal")
    with _daemon(start, HOSTS[0], _CONNECTABLE, "1g") as (pid, address):
        yield pid, f"sc://{address}"


@contextlib.contextmanager
def _daemon(
    arguments: list[str], host: str, started: re.Pattern[str], memory: str = "256m"
) -> Iterator[tuple[int, str]]:
    """A process of Spark's in a group of its own, once its log says that it has started."""
    environment = {
        **os.environ,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": host,
        "SPARK_DAEMON_MEMORY": memory,
        "PYSPARK_PYTHON": sys.executable,
    }
    process = subprocess.Popen(
        [str(SPARK_HOME / "bin" / "spark-class"), *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process.pid, _wait_for(process, started)
    finally:
        process.terminate()  # a worker ends its executors
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for(process: subprocess.Popen[str], started: re.Pattern[str]) -> str:
    """What the pattern's group finds in the process's log, which is read to its end."""
    found: queue.Queue[str | None] = queue.Queue()
    lines: list[str] = []

    def read() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            if match := started.search(line):
                found.put(match[1])
        found.put(None)

    threading.Thread(target=read, daemon=True).start()
    answer = found.get(timeout=_START_S)
    if answer is None:
        raise RuntimeError("Spark's daemon has ended:\n" + "".join(lines[-30:]))
    return answer


def _executors(worker: int) -> list[int]:
    """Its children that are executors: a JVM has others too, while it starts one."""
    return [pid for pid in _children(worker) if b"CoarseGrainedExecutorBackend" in _command(pid)]


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
