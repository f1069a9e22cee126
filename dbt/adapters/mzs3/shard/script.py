"""The PySpark job that a `persist_shard` model compiles to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.mzs3.copy.script import python_literal, python_text

_TEMPLATE = '''\
# The shard of {node}, compiled by dbt-mzs3.
# Whoever submits it provides `spark`, `aws_connections`, `as_of` (the run's start in ms since the
# epoch), `cancelled` (an event) and `tell` (called with what a user should look into). It names an
# AWS connection of the profile, and no secret.
from dbt.adapters.mzs3.shard.write.job import persist_shard

QUERY = """
{query}
"""

OPTIONS = {options}

result = persist_shard(
    spark,
    QUERY,
    node={node!r},
    options=OPTIONS,
    connections=aws_connections,
    as_of=as_of,
    cancelled=cancelled,
    tell=tell,
)
'''


def render_shard_job(node: str, query: str, options: Mapping[str, Any]) -> str:
    """Python source whose QUERY is `query` to the last byte, but for white space around it."""
    return _TEMPLATE.format(node=node, query=python_text(query), options=python_literal(options))
