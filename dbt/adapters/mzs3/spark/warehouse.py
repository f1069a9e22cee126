"""Where a session keeps its tables, its metastore and Derby's log."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

DEFAULT_FOLDER = ".spark"

WAREHOUSE = "spark.sql.warehouse.dir"
CATALOG = "spark.sql.catalogImplementation"
METASTORE_URL = "spark.hadoop.javax.jdo.option.ConnectionURL"
_METASTORE_KEYS = (
    METASTORE_URL,
    "spark.hadoop.hive.metastore.uris",
    "spark.hive.metastore.uris",
    "hive.metastore.uris",
)
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_OWN_SETTINGS = ("spark.sql.warehouse.dir", "metastore", "javax.jdo")


def place_warehouse(parameters: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The parameters, with what they leave open about places filled in.

    The metastore and Derby's log go beside the warehouse the parameters name. Where they name
    none, all three go into the one folder `.spark` below `folder`. A metastore or a Spark
    configuration of the user's own (spark-defaults.conf, hive-site.xml) is left alone.
    """
    placed = dict(parameters)
    if WAREHOUSE not in placed and not _configured_elsewhere():
        placed[WAREHOUSE] = str(folder / DEFAULT_FOLDER / "warehouse")
    warehouse = _local_path(placed.get(WAREHOUSE), folder)
    if warehouse is None or _has_metastore(placed):
        return placed
    placed[WAREHOUSE] = str(warehouse)
    home = warehouse.parent
    placed[METASTORE_URL] = f"jdbc:derby:;databaseName={home / 'metastore_db'};create=true"
    log = f'"-Dderby.stream.error.file={home / "derby.log"}"'
    placed[_JAVA_OPTIONS] = f"{placed.get(_JAVA_OPTIONS, '')} {log}".strip()
    return placed


def make_warehouse(parameters: Mapping[str, str]) -> None:
    """Make the warehouse's folder where it is local; git is told to ignore our default folder."""
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


def _has_metastore(parameters: Mapping[str, str]) -> bool:
    if parameters.get(CATALOG, "hive") != "hive":
        return True  # Spark's in-memory catalog: there is nothing to place
    return any(key in parameters for key in _METASTORE_KEYS) or _configured_elsewhere()


def _configured_elsewhere() -> bool:
    conf = os.environ.get("SPARK_CONF_DIR")
    if conf is None and os.environ.get("SPARK_HOME"):
        conf = str(Path(os.environ["SPARK_HOME"]) / "conf")
    if conf is None:
        return False
    if (Path(conf) / "hive-site.xml").exists():
        return True
    defaults = Path(conf) / "spark-defaults.conf"
    return defaults.exists() and any(key in defaults.read_text() for key in _OWN_SETTINGS)
