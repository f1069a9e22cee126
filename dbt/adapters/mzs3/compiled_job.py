"""The PySpark jobs that models compile to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_JOB = '''\
# {what} of {node}, compiled by dbt-mzs3.
# Whoever submits it provides `spark`, `aws_connections`, `as_of` (the run's start in ms since the
# epoch), `cancelled` (an event), `tell` (called with what happens), `scrub` (which takes secrets
# out of a text) and `invocation_id`.
# It names an AWS connection of the profile, and no secret.
from dbt.adapters.mzs3.api import {imported}

QUERY = """
{query}
"""

OPTIONS = {options}

result = {function}(
    spark,
    QUERY,
    node={node!r},
    options=OPTIONS,
    connections=aws_connections,
    as_of=as_of,
    cancelled=cancelled,
{more})
'''

_MORE_OF_COPY = """\
    full_refresh={full_refresh!r},
    context=RunContext(
        schema={schema!r},
        identifier={identifier!r},
        invocation_id=invocation_id,
        tell=tell,
        scrub=scrub,
    ),
"""


def render_copy_job(
    node: str,
    query: str,
    options: Mapping[str, Any],
    *,
    schema: str,
    identifier: str,
    full_refresh: bool = False,
) -> str:
    """The Python source of an export; its QUERY equals `query`, without white space around it."""
    more = _MORE_OF_COPY.format(full_refresh=full_refresh, schema=schema, identifier=identifier)
    names = {"imported": "RunContext, copy_to_s3", "function": "copy_to_s3"}
    return _JOB.format(what="COPY TO S3", **names, **_of_model(node, query, options), more=more)


def render_shard_job(node: str, query: str, options: Mapping[str, Any]) -> str:
    """The Python source of a shard; its QUERY equals `query`, without white space around it."""
    names = {"imported": "persist_shard", "function": "persist_shard"}
    more = "    tell=tell,\n"
    return _JOB.format(what="The shard", **names, **_of_model(node, query, options), more=more)


def _of_model(node: str, query: str, options: Mapping[str, Any]) -> dict[str, str]:
    """The parts of the source that depend on the model."""
    text = query.strip().replace("\\", "\\\\").replace("\r", "\\r")
    # A JSON round trip, so that the source only has plain values.
    plain = json.loads(json.dumps(dict(options)))
    lines = "".join(f"    {key!r}: {value!r},\n" for key, value in sorted(plain.items()))
    return {
        "node": node,
        "query": text.replace('"""', '\\"\\"\\"'),
        "options": "{\n" + lines + "}" if lines else "{}",
    }
