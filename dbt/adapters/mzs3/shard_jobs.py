"""The door from `persist_shard` models to the jobs that write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.connections import as_dbt_error
from dbt.adapters.mzs3.credentials import Mzs3ConnectionMethod, Mzs3Credentials
from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.shard.config.options import parse_shard_options
from dbt.adapters.mzs3.shard.script import render_shard_job


def compile_shard_job(
    credentials: Mzs3Credentials,
    node: str,
    query: str,
    options: Mapping[str, Any],
    on_schema_change: str | None,
) -> str:
    """The job's source; creates nothing. Raises DbtRuntimeError with all that is wrong."""
    if credentials.method != Mzs3ConnectionMethod.SESSION:
        raise DbtRuntimeError(
            f"{node}: persist_shard needs `method: session` in the profile; "
            f"`method: {credentials.method}` runs SQL only in this version of dbt-mzs3"
        )
    given = dict(options)
    if on_schema_change is not None:
        given["on_schema_change"] = on_schema_change
    try:
        parse_shard_options(node, given, credentials.connections)
        return render_shard_job(node, query, given)
    except Mzs3Error as exc:
        raise as_dbt_error(exc) from exc
