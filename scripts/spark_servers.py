"""Spark's servers as processes on the loopback interface, from the jars of pip's pyspark.

Each is a context manager that yields a `Server` once it takes work, and ends it by its process id.
Ports are free ones. `folder` gets the server's log, and what it keeps.
"""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyspark

LOOPBACK = "127.0.0.1"
WORKER_MB = 700
"""What a worker has for executors."""
WORKERS_PYTHON = Path(sys.prefix) / "workers" / "bin" / "python"
"""A Python with pyarrow and boto3 alone, which `make .venv/.workers` makes below this one's."""

_SPARK_HOME = Path(pyspark.__file__).parent
_START_S = 120
_STOP_S = 20
_CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
_THRIFT = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
# Of the caller's own work: it would point servers, or the Python of their workers, elsewhere.
_FOREIGN = ("HADOOP_", "HIVE_", "PYSPARK_", "PYTHONPATH", "SPARK_CONF", "SPARK_HOME")


@dataclass(frozen=True)
class Server:
    """A server that has started: its address, that of its web page if it has one, its process."""

    url: str
    page: str
    pid: int
    log: Path


@contextmanager
def master(folder: Path) -> Iterator[Server]:
    """A standalone master, `spark://…`."""
    arguments = ["org.apache.spark.deploy.master.Master", "--host", LOOPBACK]
    started = (r"Starting Spark master at (spark://\S+)", r"MasterWebUI.* started at (\S+)")
    log = folder / "master.log"
    with _jvm(log, "spark-class", [*arguments, *_FREE_PORTS], started, _SMALL) as server:
        yield server


@contextmanager
def worker(
    folder: Path,
    name: str,
    master: str,
    host: str = LOOPBACK,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """A worker of one core, whose executors have this environment beside the caller's."""
    arguments = ["org.apache.spark.deploy.worker.Worker", "--host", host, *_FREE_PORTS]
    arguments += ["--cores", "1", "--memory", f"{WORKER_MB}m", "--work-dir", str(folder / name)]
    started = (r"Successfully registered with master (\S+)", r"WorkerWebUI.* started at (\S+)")
    environment = {**_SMALL, **(environment or {}), "SPARK_LOCAL_IP": host}
    log = folder / f"{name}.log"
    with _jvm(log, "spark-class", [*arguments, master], started, environment) as server:
        yield server


@contextmanager
def connect_server(
    folder: Path, settings: Mapping[str, str], environment: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """A Spark Connect server, `sc://…`, with a Spark of two cores unless `settings` say else."""
    own = {
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": "0",
    }
    arguments = _submitted(_CONNECT, "spark-connect", {**own, **settings})
    started = (r"Connect server started at: \S*?(\d+)\s*$", _UI)
    log = folder / "connect.log"
    with _jvm(log, "spark-submit", arguments, started, environment) as server:
        yield _addressed(f"sc://{LOOPBACK}:{server.url}", server)


@contextmanager
def thrift_server(
    folder: Path, settings: Mapping[str, str], environment: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """A Thrift server, `host:port`, with a Spark of two cores unless `settings` say else."""
    own = {
        "spark.hadoop.hive.server2.thrift.bind.host": LOOPBACK,
        "spark.hadoop.hive.server2.thrift.port": "0",
    }
    arguments = _submitted(_THRIFT, "spark-thrift", {**own, **settings})
    started = (r"Starting ThriftBinaryCLIService on port (\d+)", _UI)
    log = folder / "thrift.log"
    with _jvm(log, "spark-submit", arguments, started, environment) as server:
        yield _addressed(f"{LOOPBACK}:{server.url}", server)


@contextmanager
def metastore(folder: Path) -> Iterator[Server]:
    """A metastore that several Sparks share, `thrift://…`."""
    program = Path(__file__).with_name("hive_metastore.py")
    command = [sys.executable, str(program), str(folder / "metastore")]
    started = (r"serving (thrift://\S+)",)
    with _process(folder / "metastore.log", command, started, {}) as server:
        yield server


def shared_tables(folder: Path, metastore: str) -> dict[str, str]:
    """The settings of all Sparks that share the metastore, and their tables' folder."""
    return {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": metastore,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }


_SMALL = {"SPARK_DAEMON_MEMORY": "256m"}
_FREE_PORTS = ("--port", "0", "--webui-port", "0")


_UI = r"service 'SparkUI' on port (\d+)"


def _addressed(url: str, server: Server) -> Server:
    """Of a server whose log has said the ports alone."""
    return Server(url, f"http://{LOOPBACK}:{server.page}", server.pid, server.log)


def _submitted(main: str, name: str, settings: Mapping[str, str]) -> list[str]:
    settings = {
        "spark.master": "local[2]",
        "spark.app.name": name,
        "spark.driver.memory": "1g",
        "spark.ui.port": "0",
        **settings,
    }
    given = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    return ["--class", main, *given, "spark-internal"]


def _jvm(
    log: Path,
    program: str,
    arguments: Sequence[str],
    started: Sequence[str],
    environment: Mapping[str, str] | None = None,
) -> AbstractContextManager[Server]:
    command = [str(_SPARK_HOME / "bin" / program), *arguments]
    return _process(log, command, started, environment or {})


@contextmanager
def _process(
    log: Path, command: Sequence[str], started: Sequence[str], environment: Mapping[str, str]
) -> Iterator[Server]:
    """A process in a group of its own, once its log has each of these patterns, in any order."""
    log.parent.mkdir(parents=True, exist_ok=True)
    own = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    process = subprocess.Popen(
        command,
        env={
            **own,
            "SPARK_LOCAL_IP": LOOPBACK,
            "PYSPARK_PYTHON": str(WORKERS_PYTHON),
            **environment,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    reader: threading.Thread | None = None
    try:
        said: queue.Queue[tuple[str, ...] | None] = queue.Queue()
        patterns = [re.compile(pattern) for pattern in started]
        assert process.stdout is not None
        reader = threading.Thread(target=_follow, args=(process.stdout, log, patterns, said))
        reader.start()
        try:
            found = said.get(timeout=_START_S)
        except queue.Empty:
            found = None
        if found is None:
            last = "".join(log.read_text().splitlines(keepends=True)[-30:])
            raise RuntimeError(f"{log.stem} did not start:\n{last}")
        yield Server(found[0], found[-1], process.pid, log)
    finally:
        process.terminate()  # a worker ends its executors
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_S)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if reader is not None:
            reader.join()


def _follow(
    output: IO[str],
    log: Path,
    patterns: Sequence[re.Pattern[str]],
    said: queue.Queue[tuple[str, ...] | None],
) -> None:
    """Copies the output to the log, to its end; says once what each pattern's group has found."""
    found: dict[int, str] = {}
    with output, log.open("a", buffering=1) as copy:
        for line in output:
            copy.write(line)
            for number, pattern in enumerate(patterns):
                if number not in found and (match := pattern.search(line)):
                    found[number] = match[1]
                    if len(found) == len(patterns):
                        said.put(tuple(found[number] for number in sorted(found)))
    said.put(None)
