"""How a profile has jobs submitted, where dbt has no session of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.options.values import ConfigReader, text, whole_number
from dbt.adapters.mzs3.text import did_you_mean

KEY = "spark_submit"
_SUBJECT = f"{KEY} of the profile"


@dataclass(frozen=True)
class SubmitOptions:
    """What `spark-submit` is given; its repr has no value of a setting.

    The text below a field is its row in `docs/options.md`.
    """

    master: str | None = None
    """The cluster that runs the jobs, such as `yarn` or `spark://host:7077`. Without it, Spark's
    own configuration says which."""
    deploy_mode: str = "client"
    """`client`: the driver of a job runs beside dbt, and the work on the cluster. No other is
    supported."""
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Spark's settings for jobs, among them the metastore that the server has. They are in a file
    that nobody else can read, and on no command line."""
    py_files: tuple[str, ...] = ()
    """What else `spark-submit --py-files` gets, for Python models: `.py`, `.zip` and `.egg`
    files."""
    timeout: int = 0
    """After how many seconds a job is ended, its start included. 0 is never."""


_KEYS = tuple(each.name for each in fields(SubmitOptions))


def parse_submit_options(declared: Any) -> SubmitOptions:
    """The options that stand under `spark_submit`; an empty mapping takes all defaults.

    Raises ConfigError with all problems, which quote no value of a setting, as it may be a secret.
    """
    if not isinstance(declared, Mapping):
        problem = f"{KEY} must be a mapping of keys such as master and conf"
        raise ConfigError(_SUBJECT, [problem])
    problems: list[str] = []
    read = ConfigReader(declared, problems, f"{KEY}.")
    for key in declared:
        if key not in _KEYS:
            hint = did_you_mean(str(key), _KEYS)
            read.note(f"{key} is not a known key; {hint}known are {', '.join(_KEYS)}")
    converters = {
        "master": text,
        "deploy_mode": _deploy_mode,
        "conf": _conf,
        "py_files": _files,
        "timeout": whole_number(0),
    }
    options = SubmitOptions(**read.all(converters))
    if options.master is not None and "spark.master" in options.conf:
        read.note("master and conf.spark.master are both given; give one of them")
    if "spark.submit.deployMode" in options.conf:
        read.note("conf.spark.submit.deployMode is given as deploy_mode")
    if problems:
        raise ConfigError(_SUBJECT, problems)
    return options


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
        str(key): str(one).lower() if isinstance(one, bool) else str(one)
        for key, one in value.items()
        if one is not None and not isinstance(one, (list, Mapping))
    }
    if wrong := [str(key) for key in value if str(key) not in texts]:
        raise ValueError(f"must have a text or a number for {', '.join(wrong)}")
    return texts


def _files(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise ValueError(f"must be a list of files, not {value!r}")
    if with_commas := [one for one in value if "," in one]:
        raise ValueError(f"can't have a comma in a file's name: {', '.join(with_commas)}")
    return tuple(value)
