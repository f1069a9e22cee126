"""The door from `persist_shard` models to the jobs that write them."""

from __future__ import annotations

from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.connections import as_dbt_error
from dbt.adapters.mzs3.credentials import Mzs3ConnectionMethod, Mzs3Credentials
from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.jobs import render_shard_job
from dbt.adapters.mzs3.shard.config.options import parse_shard_options


def shard_options(node: Any) -> dict[str, Any]:
    """The options in a model's config, those among them that dbt knows too, if they are given.

    dbt has defaults of its own for these: `on_schema_change: ignore`, and no `column_types`.
    """
    given = dict(node.config.extra)
    if "on_schema_change" in node.unrendered_config:
        given["on_schema_change"] = node.config.on_schema_change
    if node.config.column_types:
        given["column_types"] = node.config.column_types
    return given


def compile_shard_job(credentials: Mzs3Credentials, node: Any, query: str) -> str:
    """The job's source; creates nothing. Raises DbtRuntimeError with all that is wrong."""
    name = node.unique_id
    if credentials.method != Mzs3ConnectionMethod.SESSION:
        raise DbtRuntimeError(
            f"{name}: persist_shard needs `method: session` in the profile; "
            f"`method: {credentials.method}` runs SQL only in this version of dbt-mzs3"
        )
    given = shard_options(node)
    try:
        parse_shard_options(name, given, credentials.connections)
        return render_shard_job(name, query, given)
    except Mzs3Error as exc:
        raise as_dbt_error(exc) from exc
