"""The settings of a profile's output with `type: mzs3`, which dbt calls credentials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, Optional, Tuple  # noqa: UP035 (dbt's schema reader knows these only)

from dbt.adapters.spark.connections import SparkCredentials
from dbt_common.dataclass_schema import StrEnum
from dbt_common.exceptions import DbtRuntimeError, env_secrets

from dbt.adapters.mzs3.errors import ConfigError, SparkJobError
from dbt.adapters.mzs3.options.option import mask_secrets, secret_values
from dbt.adapters.mzs3.secrets import HIDDEN, hide_login, secret_settings
from dbt.adapters.mzs3.spark.interrupt import EXECUTOR_TIMEOUT_S
from dbt.adapters.mzs3.spark.remote import server_address, url_problem
from dbt.adapters.mzs3.spark.settings import WAREHOUSE
from dbt.adapters.mzs3.store.connection import AwsConnection, parse_connections
from dbt.adapters.mzs3.submit.options import SubmitOptions, parse_submit_options

SPARK_CATALOG = "spark_catalog"
"""Spark's default catalog."""
SESSION, SPARK_SUBMIT = "session", "spark_submit"
"""The submission methods of Python models."""
_SECRET_FIELDS = (
    *("token", "password", "connection_string_suffix", "server_side_parameters", "spark_submit"),
)


class Mzs3ConnectionMethod(StrEnum):
    """How dbt reaches Spark."""

    SESSION = "session"
    CONNECT = "connect"
    THRIFT = "thrift"
    HTTP = "http"
    ODBC = "odbc"


@dataclass
class Mzs3Credentials(SparkCredentials):
    """The checked output of a profile.

    Its repr, `dbt debug`, Jinja's `target` and dbt's serialization do not contain its secrets.
    Raises DbtRuntimeError with all problems at once. The text below a field is its row in
    `docs/options.md`.
    """

    method: Mzs3ConnectionMethod = None  # type: ignore[assignment]
    """`session`: Spark runs in dbt's process, locally or on the cluster that `spark.master` names.
    `connect`: Spark runs behind a Spark Connect server. `thrift`, `http`, `odbc`: SQL as in
    dbt-spark, with its keys; all else needs `spark_submit`."""
    host: Optional[str] = None  # noqa: UP045
    """With `connect`, the server: `sc://spark.acme.com:15002`, followed by what it needs, such as
    `/;use_ssl=true;token={{ env_var('DBT_ENV_SECRET_SPARK_TOKEN') }}`. Values are
    percent-encoded: `/` as `%2F`, `=` as `%3D`. What follows the `;` is not shown."""
    # Numbers and booleans of YAML are converted to text below.
    server_side_parameters: Dict[str, Any] = field(default_factory=dict)  # noqa: UP006
    """Spark's settings. Without `spark.sql.warehouse.dir`, tables and the metastore are kept in
    `.spark/` where dbt runs."""
    aws_connections: Dict[str, Any] = field(default_factory=dict)  # noqa: UP006
    """[Connections to S3](#aws_connections) by name. A connection `default` that is not declared
    is boto3's own credential chain."""
    executor_timeout: int = EXECUTOR_TIMEOUT_S
    """For how many seconds work waits while no executor of the cluster runs any of it. Then all
    that runs fails, and what comes after waits a minute at most until an executor is there. 0 is
    for ever."""
    spark_submit: Optional[Dict[str, Any]] = None  # noqa: UP006, UP045
    """With `thrift`, `http` and `odbc`: exports, shards, sources and Python models run as jobs of
    `spark-submit`. [What it is given](#spark_submit), or `{}`."""

    def __post_init__(self) -> None:
        problems = [*self._problems()]
        # Not fields, as dbt serializes those: they keep the profile's own values, and are masked.
        self.connections: dict[str, AwsConnection] = {}
        self.submit_options: SubmitOptions | None = None
        try:
            self.connections = parse_connections(self.aws_connections)
        except ConfigError as exc:
            problems.append(str(exc))
        if self.spark_submit is not None:
            try:
                self.submit_options = parse_submit_options(self.spark_submit)
            except ConfigError as exc:
                problems.append(str(exc))
        if problems:
            raise DbtRuntimeError("\n".join(problems))
        parameters = {
            key: str(value).lower() if isinstance(value, bool) else str(value)
            for key, value in self.server_side_parameters.items()
        }
        host = self.host
        # dbt-spark requires a host, removes its final slash, and turns off ANSI mode, which only
        # the profile may do (docs/decisions/0001-ansi-mode.md): this is undone below.
        if self.method == Mzs3ConnectionMethod.SESSION:
            self.host = host or ""
        super().__post_init__()
        if self.has_session:
            self.host = host
        self.server_side_parameters = parameters

    def _problems(self) -> Iterator[str]:
        if self.executor_timeout < 0:
            yield (
                "executor_timeout is the number of seconds that work may wait for Spark's "
                f"executors, or 0 for no limit; it can't be {self.executor_timeout}"
            )
        if self.spark_submit is not None and self.has_session:
            yield (
                f"spark_submit is for method: thrift, http and odbc; with method: {self.method} "
                "everything runs in the session of a connection: remove it"
            )
        if self.method != Mzs3ConnectionMethod.CONNECT:
            if "@" in (self.host or ""):
                yield (
                    "host must be the name of a host, without a user and a password, which have "
                    "keys of their own"
                )
            return
        if problem := url_problem(self.host or ""):
            yield problem
        if self.token:
            yield "with method: connect the token belongs into host, after ;token="

    @cached_property
    def folder(self) -> Path:
        """The directory where dbt was started, as models may change the working directory."""
        return Path.cwd()

    @property
    def has_session(self) -> bool:
        """Whether connections hold a Spark session."""
        return self.method in (Mzs3ConnectionMethod.SESSION, Mzs3ConnectionMethod.CONNECT)

    @property
    def runs_jobs(self) -> bool:
        """Whether the profile can run jobs, not only SQL."""
        return self.has_session or self.submit_options is not None

    @property
    def secrets(self) -> list[str]:
        """What logs and errors must not show: the values of DBT_ENV_SECRET_*, the token and the
        password, the keys of connections, and Spark's settings that look like secrets."""
        submitted = self.submit_options.conf if self.submit_options else {}
        return [
            *env_secrets(),
            *(s for connection in self.connections.values() for s in secret_values(connection)),
            *secret_settings(self.server_side_parameters),
            *secret_settings(submitted),
            *filter(None, (self.token, self.password)),
        ]

    @property
    def submission_method(self) -> str:
        """The `submission_method` of Python models."""
        return SESSION if self.submit_options is None else SPARK_SUBMIT

    @property
    def default_catalog(self) -> str:
        """The catalog, by the profile, of schemas that are named without one."""
        return str(self.server_side_parameters.get("spark.sql.defaultCatalog", SPARK_CATALOG))

    @property
    def connect_server(self) -> str | None:
        """The URL of the Spark Connect server, with its token; None for other methods."""
        return self.host if self.method == Mzs3ConnectionMethod.CONNECT else None

    @property
    def _host_without_token(self) -> str | None:
        return self.host and (server_address(self.host) if self.connect_server else self.host)

    @property
    def type(self) -> str:
        """The adapter's type."""
        return "mzs3"

    @property
    def unique_field(self) -> str:
        """The host or the method, which dbt hashes for its telemetry."""
        return self._host_without_token or str(self.method)

    def _connection_keys(self) -> Tuple[str, ...]:  # noqa: UP006
        if self.method == Mzs3ConnectionMethod.SESSION:
            return ("method", "schema")
        if self.connect_server:
            return ("method", "host", "schema")
        return ("method", *super()._connection_keys())

    def connection_info(self, *, with_aliases: bool = False) -> Iterable[tuple[str, Any]]:
        """The keys that `dbt debug` and Jinja's `target` show; for each AWS connection, only its
        name, region and endpoint."""
        yield from super().connection_info(with_aliases=with_aliases)
        if self.method == Mzs3ConnectionMethod.SESSION:
            for key in ("spark.master", WAREHOUSE):
                if key in self.server_side_parameters:
                    yield key, hide_login(self.server_side_parameters[key])
        if self.submit_options is not None:
            master = self.submit_options.master
            yield "spark_submit", {"master": master and hide_login(master)}
        regions = {
            name: {"region": connection.region, "endpoint": connection.endpoint}
            for name, connection in self.connections.items()
        }
        yield "aws_connections", regions

    def __post_serialize__(
        self, dct: dict[str, Any], context: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        serialized: dict[str, Any] = super().__post_serialize__(dct, context)
        serialized["host"] = self._host_without_token
        serialized["aws_connections"] = {
            name: mask_secrets(AwsConnection, given)
            for name, given in self.aws_connections.items()
        }
        for name in _SECRET_FIELDS:
            value = serialized.get(name)
            if isinstance(value, dict):  # any parameter of Spark may be a secret
                serialized[name] = dict.fromkeys(value, HIDDEN)
            elif value is not None:
                serialized[name] = HIDDEN
        return serialized

    def __repr__(self) -> str:
        return f"Mzs3Credentials({self.to_dict(omit_none=True)})"


def require_spark(credentials: Mzs3Credentials, subject: str) -> None:
    """Raises SparkJobError, which names the subject, if the profile can only run SQL."""
    if not credentials.runs_jobs:
        raise SparkJobError(
            f"{subject} needs more than SQL, which is all that `method: {credentials.method}` "
            "runs without `spark_submit` in the profile: add that, or use `method: session` or "
            "`method: connect`"
        )
