"""The Spark of this process, where it writes, and the sessions that connections get from it."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pyspark import SparkConf
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote
from pyspark.util import is_remote_only

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark import holders
from dbt.adapters.mzs3.spark.capacity import require_capacity
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, readable
from dbt.adapters.mzs3.spark.interrupt import EXECUTOR_TIMEOUT_S, watch
from dbt.adapters.mzs3.spark.job import ship_executor_code
from dbt.adapters.mzs3.spark.status import LocalScheduler

DEFAULT_FOLDER = ".spark"

WAREHOUSE = "spark.sql.warehouse.dir"
CATALOG = "spark.sql.catalogImplementation"
METASTORE_URL = "spark.hadoop.javax.jdo.option.ConnectionURL"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_OWN_SETTINGS = ("spark.sql.warehouse.dir", "metastore", "javax.jdo")

DEFAULTS = {
    "spark.app.name": "dbt-mzs3",
    CATALOG: "hive",
    "spark.sql.session.timeZone": "UTC",
    # Spark's progress bar and dbt's log would write over each other.
    "spark.ui.showConsoleProgress": "false",
    # Else `${...}` in any text or name is replaced (docs/decisions/0005-no-substitution.md).
    "spark.sql.variable.substitute": "false",
}

LOG_FILE = "spark.log"
_MAX_BYTES = 10 * 1024 * 1024  # as dbt's own log

_OF_PANDAS_3 = "PySpark does not yet fully support pandas >= 3"
_ICEBERG_CATALOG = re.compile(r"spark\.sql\.catalog\.\w+")
# Where the next Java process writes: None is this process's console.
_output: Path | int | None = None


def place_warehouse(parameters: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The parameters, completed with paths for the warehouse, `.spark` below `folder` by default,
    and beside it the metastore and Derby's log.

    A metastore or a Spark configuration of the user's own is left alone.
    """
    placed = dict(parameters)
    is_elsewhere = _configured_elsewhere()
    if WAREHOUSE not in placed and not is_elsewhere:
        placed[WAREHOUSE] = str(folder / DEFAULT_FOLDER / "warehouse")
    warehouse = _local_path(placed.get(WAREHOUSE), folder)
    is_hive = placed.get(CATALOG, "hive") == "hive"  # else it is Spark's in-memory catalog
    uris = (f"{before}hive.metastore.uris" for before in ("", "spark.", "spark.hadoop."))
    has_metastore = any(key in placed for key in (METASTORE_URL, *uris))
    if warehouse is None or is_elsewhere or has_metastore or not is_hive:
        return placed
    placed[WAREHOUSE] = str(warehouse)
    home = warehouse.parent
    placed[METASTORE_URL] = f"jdbc:derby:;databaseName={home / 'metastore_db'};create=true"
    log = f'"-Dderby.stream.error.file={home / "derby.log"}"'
    placed[_JAVA_OPTIONS] = f"{placed.get(_JAVA_OPTIONS, '')} {log}".strip()
    return placed


def make_warehouse(parameters: Mapping[str, str]) -> None:
    """Makes the warehouse's folder if it is local; our default folder gets a .gitignore."""
    warehouse = _local_path(parameters.get(WAREHOUSE), Path.cwd())
    if warehouse is None:
        return
    warehouse.mkdir(parents=True, exist_ok=True)
    ignore = warehouse.parent / ".gitignore"
    if warehouse.parent.name == DEFAULT_FOLDER and not ignore.exists():
        ignore.write_text("*\n")


def _local_path(value: str | None, folder: Path) -> Path | None:
    if not value:
        return None
    path = value.removeprefix("file://").removeprefix("file:")
    if ":" in path.split("/", 1)[0]:
        return None  # another file system
    return (folder / Path(path).expanduser()).absolute()


def _configured_elsewhere() -> bool:
    home = os.environ.get("SPARK_HOME")
    conf = os.environ.get("SPARK_CONF_DIR", home and f"{home}/conf")
    if conf is None:
        return False
    if (Path(conf) / "hive-site.xml").exists():
        return True
    defaults = Path(conf) / "spark-defaults.conf"
    return defaults.exists() and any(key in defaults.read_text() for key in _OWN_SETTINGS)


def with_defaults(parameters: Mapping[str, str]) -> dict[str, str]:
    """The parameters with ours for those that are not given.

    A catalog of Iceberg would keep tables as a session has seen them first, also once another
    session has changed them: and each connection has a session of its own. Delta's parser of
    statements does not know the way in which Spark 4.1 gives them their parameters.
    """
    by_format = {
        f"{key}.cache-enabled": "false"
        for key, value in parameters.items()
        if _ICEBERG_CATALOG.fullmatch(key) and str(value).startswith("org.apache.iceberg.")
    }
    if "DeltaSparkSessionExtension" in str(parameters.get("spark.sql.extensions")):
        by_format["spark.sql.legacy.parameterSubstitution.constantsOnly"] = "true"
    return {**DEFAULTS, **by_format, **parameters}


def get_or_create(parameters: Mapping[str, str], folder: Path | None = None) -> SparkSession:
    """The process's Spark session, with these parameters; paths start at `folder`, or where the
    process is.

    One that runs already is used if it can be, or makes way, as `holders.usable` says. For any
    thread. Raises SparkJobError when Spark can't start, or has other settings.
    """
    if is_remote_only():
        raise SparkJobError(
            "method: session needs Spark itself, and what is installed is pyspark-client, which "
            "can only reach a Spark Connect server (method: connect): run pip uninstall "
            "pyspark-client, then pip install 'dbt-mzs3[session]'"
        )
    if is_remote():
        raise SparkJobError(
            "PySpark has no Spark in this process (method: session) while a session of Spark "
            "Connect is open in it, or the environment has SPARK_CONNECT_MODE_ENABLED: close the "
            "session, or run dbt in a process of its own"
        )
    here = folder or Path.cwd()
    with holders.lock:
        quieten_pyspark()
        wanted = place_warehouse(with_defaults(parameters), here)
        return holders.usable(_absolute(parameters, here), wanted) or _start(wanted)


def _absolute(parameters: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The parameters, with the warehouse as Spark tells of it."""
    warehouse = _local_path(parameters.get(WAREHOUSE), folder)
    return {**parameters, **({} if warehouse is None else {WAREHOUSE: str(warehouse)})}


def isolated_session(
    parameters: Mapping[str, str],
    executor_timeout: int = EXECUTOR_TIMEOUT_S,
    folder: Path | None = None,
) -> SparkSession:
    """A new session on the process's Spark, as `get_or_create` has it, with those parameters that
    can be set at run time. Spark is not stopped until the session is closed or lost.

    Jobs that no executor takes for `executor_timeout` seconds fail; 0 is no limit. Raises
    SparkJobError as `get_or_create` does, and where the cluster can't take executors of the size
    that Spark asks for.
    """
    with holders.lock:
        session = holders.hold(get_or_create(parameters, folder).newSession())
    try:
        return settled(session, parameters, executor_timeout)
    except BaseException:
        holders.release(session)
        raise


def settled(
    session: SparkSession, parameters: Mapping[str, str], executor_timeout: int
) -> SparkSession:
    """A new session, with those parameters that can be set at run time."""
    scheduler = LocalScheduler(session)
    if executor_timeout > 0 and not scheduler.is_alone:
        require_capacity(session)
        watch(scheduler.name, scheduler, executor_timeout)
    wanted = with_defaults(parameters)
    for key, value in wanted.items():
        if session.conf.get(key, None) != value:
            holders.set_where_possible(session.conf, key, value)
    holders.forget_others(session, wanted)
    return session


def quieten_pyspark() -> None:
    """Has PySpark not log every failed query with its stack traces, as dbt reports them itself;
    nor warn of pandas 3, which our tests run with."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings("ignore", message=_OF_PANDAS_3, category=FutureWarning)


def _start(parameters: Mapping[str, str]) -> SparkSession:
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    make_warehouse(parameters)
    if parameters.get("spark.master", "local").startswith("local"):
        # dbt may run by its path, with another `python3` first on PATH than its own.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    interrupted = signal.getsignal(signal.SIGINT)
    is_ours = SparkContext._gateway is None
    try:
        if is_ours:
            # As the builder does, which has the console for what Java says.
            with java_output() as out:
                conf = SparkConf().setAll([*parameters.items()])
                gateway = launch_gateway(conf, {"stdout": out, "stderr": out})
            holders.launched(gateway)
            SparkContext._ensure_initialized(gateway=gateway)
        session = SparkSession.builder.config(map=dict(parameters)).getOrCreate()
    except BaseException as exc:
        # Java tells what went wrong for as long as it runs.
        failure = readable(exc) if isinstance(exc, SPARK_FAILURES) else None
        if is_ours:
            holders.end()
        if isinstance(exc, PySparkRuntimeError) and exc.getCondition() == "JAVA_GATEWAY_EXITED":
            raise SparkJobError(
                "Spark could not start its Java process. Spark 4 needs Java 17 or later: check "
                f"`java -version` and JAVA_HOME, and {output_hint()}."
            ) from exc
        if failure is not None:
            raise failure from exc
        raise
    if threading.current_thread() is threading.main_thread():
        # On Ctrl-C, Spark would cancel all jobs before they can know that the user wants it.
        signal.signal(signal.SIGINT, interrupted or signal.default_int_handler)
    if is_ours:
        holders.started(session, parameters)
    ship_executor_code()
    return session


def write_output_to(folder: Path | None) -> None:
    """The Java process that is started next appends to `spark.log` in this folder; None loses what
    it says. Without a call, it has the console of this process."""
    global _output
    _output = subprocess.DEVNULL if folder is None else folder.absolute() / LOG_FILE


def output_hint() -> str:
    """Where to look for what the Java process said."""
    if _output is None:
        return "the output of Spark above"
    if not isinstance(_output, Path):
        return "what Spark says where dbt keeps a log file, beside which is Spark's"
    here = Path.cwd()
    return str(_output.relative_to(here) if _output.is_relative_to(here) else _output)


@contextmanager
def java_output() -> Iterator[IO[bytes] | int | None]:
    """What Popen takes; None, for the console, also where the file can't be written."""
    if not isinstance(_output, Path):
        yield _output
        return
    try:
        _output.parent.mkdir(parents=True, exist_ok=True)
        if _output.exists() and _output.stat().st_size > _MAX_BYTES:
            _output.replace(_output.with_name(f"{LOG_FILE}.1"))
        file = _output.open("ab")
    except OSError:
        yield None
        return
    with file:
        yield file
