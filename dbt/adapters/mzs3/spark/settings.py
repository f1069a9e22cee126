"""Settings of Spark: our defaults, the place of its tables, and changes in a session."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES

if TYPE_CHECKING:
    from pyspark.sql.conf import RuntimeConfig

DEFAULT_FOLDER = ".spark"

WAREHOUSE = "spark.sql.warehouse.dir"
CATALOG = "spark.sql.catalogImplementation"
METASTORE_URL = "spark.hadoop.javax.jdo.option.ConnectionURL"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# A `spark-defaults.conf` that contains one of these says where tables are.
_LOCATION_MARKERS = ("spark.sql.warehouse.dir", "metastore", "javax.jdo")

DEFAULTS = {
    "spark.app.name": "dbt-mzs3",
    CATALOG: "hive",
    "spark.sql.session.timeZone": "UTC",
    # Spark's progress bar and dbt's log would overwrite each other.
    "spark.ui.showConsoleProgress": "false",
    # Spark would replace `${...}` in any text or name (docs/decisions/0005-no-substitution.md).
    "spark.sql.variable.substitute": "false",
}

_ICEBERG_CATALOG = re.compile(r"spark\.sql\.catalog\.\w+")


def place_warehouse(parameters: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Adds where tables are, unless Spark's own configuration files say that.

    This is the warehouse's path, if none is given (then it is in `.spark` below `folder`); and for
    a local warehouse with Hive's catalog, unless a metastore is configured, the paths of a
    metastore and of Derby's log, both beside the warehouse.
    """
    placed = dict(parameters)
    is_set_in_conf_files = _is_set_in_conf_files()
    if WAREHOUSE not in placed and not is_set_in_conf_files:
        placed[WAREHOUSE] = str(folder / DEFAULT_FOLDER / "warehouse")
    warehouse = local_path(placed.get(WAREHOUSE), folder)
    is_hive = placed.get(CATALOG, "hive") == "hive"  # else it is Spark's in-memory catalog
    uris = (f"{prefix}hive.metastore.uris" for prefix in ("", "spark.", "spark.hadoop."))
    has_metastore = any(key in placed for key in (METASTORE_URL, *uris))
    if warehouse is None or is_set_in_conf_files or has_metastore or not is_hive:
        return placed
    placed[WAREHOUSE] = str(warehouse)
    home = warehouse.parent
    placed[METASTORE_URL] = f"jdbc:derby:;databaseName={home / 'metastore_db'};create=true"
    log = f'"-Dderby.stream.error.file={home / "derby.log"}"'
    placed[_JAVA_OPTIONS] = f"{placed.get(_JAVA_OPTIONS, '')} {log}".strip()
    return placed


def make_warehouse(parameters: Mapping[str, str]) -> None:
    """Creates the warehouse's folder if it is local; adds a .gitignore to our default folder."""
    warehouse = local_path(parameters.get(WAREHOUSE), Path.cwd())
    if warehouse is None:
        return
    warehouse.mkdir(parents=True, exist_ok=True)
    ignore = warehouse.parent / ".gitignore"
    if warehouse.parent.name == DEFAULT_FOLDER and not ignore.exists():
        ignore.write_text("*\n")


def local_path(value: str | None, folder: Path) -> Path | None:
    """The path in a setting, relative to `folder`; None without a value or on another file
    system."""
    if not value:
        return None
    path = value.removeprefix("file://").removeprefix("file:")
    if ":" in path.split("/", 1)[0]:
        return None  # another file system
    return (folder / Path(path).expanduser()).absolute()


def _is_set_in_conf_files() -> bool:
    home = os.environ.get("SPARK_HOME")
    conf = os.environ.get("SPARK_CONF_DIR", home and f"{home}/conf")
    if conf is None:
        return False
    if (Path(conf) / "hive-site.xml").exists():
        return True
    defaults = Path(conf) / "spark-defaults.conf"
    return defaults.exists() and any(key in defaults.read_text() for key in _LOCATION_MARKERS)


def with_defaults(parameters: Mapping[str, str]) -> dict[str, str]:
    """The parameters, with our defaults for missing ones.

    Turns off the cache of Iceberg catalogs, with which a session misses the changes of other
    connections. For Delta, SQL parameters are substituted as before Spark 4.1.
    """
    by_format = {
        f"{key}.cache-enabled": "false"
        for key, value in parameters.items()
        if _ICEBERG_CATALOG.fullmatch(key) and str(value).startswith("org.apache.iceberg.")
    }
    if "DeltaSparkSessionExtension" in str(parameters.get("spark.sql.extensions")):
        by_format["spark.sql.legacy.parameterSubstitution.constantsOnly"] = "true"
    return {**DEFAULTS, **by_format, **parameters}


def try_set(conf: RuntimeConfig, key: str, value: str) -> bool:
    """Changes the setting if the session allows that. Returns whether it did.

    `isModifiable` is also false for settings that Spark does not declare, such as a catalog's and
    Comet's; a session accepts these nevertheless.
    """
    is_modifiable = conf.isModifiable(key)
    if not is_modifiable and not key.startswith(("spark.sql.", "spark.comet.")):
        return False
    try:
        conf.set(key, value)
    except SPARK_FAILURES:
        if is_modifiable:
            raise
        return False
    return True


@contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Changes settings of the session inside the block, as far as `try_set` can, and restores them
    afterwards."""
    conf, before = spark.conf, {}
    try:
        for key, value in values.items():
            old = conf.get(key, None)
            if old != value and try_set(conf, key, value):
                before[key] = old
        yield
    finally:
        # This only fails if the session has ended, and then the block has failed too.
        with suppress(*SPARK_FAILURES, OSError):
            for key, old in before.items():
                if old is None:
                    conf.unset(key)
                else:
                    conf.set(key, old)
