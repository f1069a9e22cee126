"""The outputs of a profile with `type: mzs3`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, Dict, Optional, Tuple  # noqa: UP035 (dbt's schema reader knows these only)

from dbt.adapters.spark.connections import SparkCredentials
from dbt_common.dataclass_schema import StrEnum
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.aws.connection import AwsConnection, parse_connections
from dbt.adapters.mzs3.errors import ConfigError, SparkJobError
from dbt.adapters.mzs3.spark.interrupt import EXECUTOR_TIMEOUT_S
from dbt.adapters.mzs3.spark.session import WAREHOUSE

HIDDEN = "***"
_SECRET_AWS_KEYS = {f.name for f in fields(AwsConnection) if not f.repr}
_SECRET_FIELDS = ("token", "password", "connection_string_suffix", "server_side_parameters")


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

    Its secrets are not in its repr, in `dbt debug`, in Jinja's `target` or in what dbt serializes.
    Raises DbtRuntimeError for a profile that can't work, with all problems of the AWS connections
    at once. The text below a field is its row in `docs/options.md`.
    """

    method: Mzs3ConnectionMethod = None  # type: ignore[assignment]
    """`session`: Spark runs in dbt's process, locally or on the cluster that `spark.master` names.
    `thrift`, `http`, `odbc`: SQL models only, as in dbt-spark, with its keys."""
    host: Optional[str] = None  # noqa: UP045
    # YAML's numbers and booleans are as good as text here.
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

    def __post_init__(self) -> None:
        if self.method == Mzs3ConnectionMethod.CONNECT:
            raise DbtRuntimeError(
                "method: connect (Spark Connect) is not supported by this version of dbt-mzs3; "
                "use method: session"
            )
        if self.executor_timeout < 0:
            raise DbtRuntimeError(
                "executor_timeout is the number of seconds that work may wait for Spark's "
                f"executors, or 0 for no limit; it can't be {self.executor_timeout}"
            )
        # dbt-spark's checks, but for two things: it wants a host, which a session has not, and it
        # would turn off ANSI mode (docs/decisions/0001-ansi-mode.md).
        given = {
            key: str(value).lower() if isinstance(value, bool) else str(value)
            for key, value in self.server_side_parameters.items()
        }
        hostless = self.method == Mzs3ConnectionMethod.SESSION and self.host is None
        if hostless:
            self.host = ""
        super().__post_init__()
        if hostless:
            self.host = None
        self.server_side_parameters = given
        # Not a field: what dbt serializes is the profile's own text, with its keys masked.
        try:
            self.connections: dict[str, AwsConnection] = parse_connections(self.aws_connections)
        except ConfigError as exc:
            raise DbtRuntimeError(str(exc)) from exc

    @property
    def type(self) -> str:
        """The adapter's type."""
        return "mzs3"

    @property
    def unique_field(self) -> str:
        """The host or the method, which dbt hashes for its telemetry."""
        return self.host or str(self.method)

    def _connection_keys(self) -> Tuple[str, ...]:  # noqa: UP006
        if self.method == Mzs3ConnectionMethod.SESSION:
            return ("method", "schema")
        return ("method", *super()._connection_keys())

    def connection_info(self, *, with_aliases: bool = False) -> Iterable[tuple[str, Any]]:
        """The keys that `dbt debug` prints and Jinja's `target` has; of AWS connections only the
        name, region and endpoint."""
        yield from super().connection_info(with_aliases=with_aliases)
        if self.method == Mzs3ConnectionMethod.SESSION:
            for key in ("spark.master", WAREHOUSE):
                if key in self.server_side_parameters:
                    yield key, self.server_side_parameters[key]
        shown = {
            name: {"region": connection.region, "endpoint": connection.endpoint}
            for name, connection in self.connections.items()
        }
        yield "aws_connections", shown

    def __post_serialize__(
        self, dct: dict[str, Any], context: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        shown: dict[str, Any] = super().__post_serialize__(dct, context)
        shown["aws_connections"] = {
            name: {
                key: HIDDEN if key in _SECRET_AWS_KEYS and value is not None else value
                for key, value in values.items()
            }
            for name, values in self.aws_connections.items()
        }
        for name in _SECRET_FIELDS:
            value = shown.get(name)
            if isinstance(value, dict):  # any parameter of Spark may hold a key
                shown[name] = dict.fromkeys(value, HIDDEN)
            elif value is not None:
                shown[name] = HIDDEN
        return shown

    def __repr__(self) -> str:
        hidden = (*_SECRET_FIELDS, "aws_connections")
        shown = [(f.name, getattr(self, f.name)) for f in fields(self) if f.name not in hidden]
        given = ", ".join(f"{key}={value!r}" for key, value in shown if value is not None)
        return f"Mzs3Credentials({given}, aws_connections={list(self.aws_connections)!r})"


def require_session(credentials: Mzs3Credentials, what: str) -> None:
    """Raises SparkJobError unless the profile's method is `session`, which `what` needs."""
    if credentials.method != Mzs3ConnectionMethod.SESSION:
        raise SparkJobError(
            f"{what} needs `method: session` in the profile; `method: {credentials.method}` runs "
            "SQL only in this version of dbt-mzs3"
        )
