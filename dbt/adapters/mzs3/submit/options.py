"""The options under `spark_submit` in a profile, with which jobs are submitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.options.option import option, read
from dbt.adapters.mzs3.options.values import text, whole_number

KEY = "spark_submit"
_SUBJECT = f"{KEY} of the profile"


def _deploy_mode(value: Any) -> str:
    if value == "cluster":
        raise ValueError(
            "can't be cluster, as a driver inside the cluster can be given the secrets of "
            "aws_connections in no safe way; leave it out, and only the driver runs beside dbt"
        )
    if value != "client":
        raise ValueError(f"must be client, not {value!r}")
    return "client"


def _conf(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError("must be a mapping of Spark's settings")
    others = [str(key) for key in value if not str(key).startswith("spark.")]
    if others:
        raise ValueError(
            f"has {', '.join(others)}, and the names of Spark's settings begin with spark.; one "
            "of Hadoop or Hive has spark.hadoop. before it"
        )
    texts = {
        str(key): str(item).lower() if isinstance(item, bool) else str(item)
        for key, item in value.items()
        if item is not None and not isinstance(item, (list, Mapping))
    }
    if wrong := [str(key) for key in value if str(key) not in texts]:
        raise ValueError(f"must have a text or a number for {', '.join(wrong)}")
    return texts


def _files(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(file, str) and file for file in value):
        raise ValueError(f"must be a list of files, not {value!r}")
    if with_commas := [file for file in value if "," in file]:
        raise ValueError(f"can't have a comma in a file's name: {', '.join(with_commas)}")
    return tuple(value)


@dataclass(frozen=True)
class SubmitOptions:
    """What `spark-submit` is given; its repr has no value of a setting.

    The text below a field is its row in `docs/options.md`.
    """

    master: str | None = option(text, None)
    """The cluster that runs the jobs, such as `yarn` or `spark://host:7077`. Without it, Spark's
    own configuration says which."""
    deploy_mode: str = option(_deploy_mode, "client")
    """`client`: the driver of a job runs beside dbt, and the work on the cluster. No other is
    supported."""
    conf: Mapping[str, str] = option(_conf, {}, secret=True)
    """Spark's settings for jobs, among them the metastore that the server has. They are in a file
    that nobody else can read, and on no command line."""
    py_files: tuple[str, ...] = option(_files, ())
    """What else `spark-submit --py-files` gets, for Python models: `.py`, `.zip` and `.egg`
    files."""
    timeout: int = option(whole_number(0), 0)
    """After how many seconds a job is ended, its start included. 0 is never."""

    def problems(self, _: Mapping[str, Any]) -> Iterator[str]:
        """The problems of settings that are given twice."""
        if self.master is not None and "spark.master" in self.conf:
            yield "master and conf.spark.master are both given; give one of them"
        if "spark.submit.deployMode" in self.conf:
            yield "conf.spark.submit.deployMode is given as deploy_mode"


def parse_submit_options(declared: Any) -> SubmitOptions:
    """Parses the options under `spark_submit`; an empty mapping means all defaults.

    Raises ConfigError with all problems; they quote no values of settings, which may be secrets.
    """
    if not isinstance(declared, Mapping):
        problem = f"{KEY} must be a mapping of keys such as master and conf"
        raise ConfigError(_SUBJECT, [problem])
    return read(SubmitOptions, declared, _SUBJECT, of=KEY, within=f"{KEY}.")
