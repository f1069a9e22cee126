"""The `spark-submit` command of a job, the files that it reads, and its environment."""

from __future__ import annotations

import importlib.util
import os
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import dbt.adapters.mzs3.errors as anchor
from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.submit.options import SubmitOptions

PROPERTIES = "spark.properties"
"""The file of Spark's settings, which `spark-submit` reads before the driver starts."""
PACKAGE = Path(anchor.__file__).parent
# dbt allows variables with these names only in the profile.
_HIDDEN_PREFIX = "DBT_ENV_SECRET"
_MAIN = "from dbt.adapters.mzs3.submit.driver import main\n\nmain()\n"


def spark_submit() -> Path:
    """The path of `spark-submit` in SPARK_HOME, or if that is not set, in the installed pyspark.
    Raises SparkJobError if there is none."""
    home, spec = os.environ.get("SPARK_HOME"), importlib.util.find_spec("pyspark")
    homes = [home] if home else list(spec.submodule_search_locations or ()) if spec else []
    for folder in homes:
        if (script := Path(folder) / "bin" / "spark-submit").exists():
            return script
    where = f"SPARK_HOME, which is {home}, has none" if home else "there is none"
    raise SparkJobError(
        f"jobs need bin/spark-submit, and {where}: install pyspark beside dbt, or set SPARK_HOME "
        "to a Spark of version 4"
    )


def command(
    options: SubmitOptions, settings: Mapping[str, str], folder: Path, socket: Path
) -> list[str]:
    """Writes the files that the command reads to the private folder. Returns the command."""
    script = spark_submit()
    archive, main, properties = (
        folder / name for name in ("dbt_mzs3.zip", "dbt_mzs3_job.py", PROPERTIES)
    )
    _write_archive(archive)
    main.write_text(_MAIN)
    properties.touch(mode=0o600)
    properties.write_text(_properties({**settings, **options.conf}))
    master = [] if options.master is None else ["--master", options.master]
    return [
        str(script),
        *master,
        *("--deploy-mode", options.deploy_mode),
        *("--properties-file", str(properties), "--load-spark-defaults"),
        *("--py-files", ",".join([str(archive), *options.py_files])),
        *(str(main), str(socket)),
    ]


def environment(options: SubmitOptions) -> dict[str, str]:
    """This process's environment without secrets. The driver, and the workers of a local master,
    run this Python, unless the user has set another."""
    variables = {key: one for key, one in os.environ.items() if not key.startswith(_HIDDEN_PREFIX)}
    variables.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    master = options.master or options.conf.get("spark.master", "local")
    if master.startswith("local"):
        variables.setdefault("PYSPARK_PYTHON", sys.executable)
    return variables


def _write_archive(path: Path) -> None:
    """Archives our code without dbt, for the driver to import before any installed dbt, which a
    job does not need, and which takes seconds to import."""
    with zipfile.ZipFile(path, "w") as archive:
        for package in ("dbt", "dbt/adapters", "dbt/adapters/mzs3"):
            archive.writestr(f"{package}/__init__.py", "")
        for file in sorted(PACKAGE.rglob("*")):
            name = file.relative_to(PACKAGE)
            if file.is_file() and file.suffix != ".pyc" and str(name) != "__init__.py":
                archive.write(file, f"dbt/adapters/mzs3/{name}")


def _properties(settings: Mapping[str, str]) -> str:
    """The settings in the format of Java's properties files."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in settings.items())


def _escaped(text: str) -> str:
    """Escapes all but ASCII letters and digits as `\\uXXXX`, one for each UTF-16 code unit."""
    encoded = text.encode("utf-16-be")
    units = [encoded[at : at + 2] for at in range(0, len(encoded), 2)]
    return "".join(
        unit[1:].decode() if unit[0] == 0 and unit[1:].isalnum() else f"\\u{unit.hex()}"
        for unit in units
    )
