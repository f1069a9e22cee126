"""The compiled job: readable, and the query in it is the model's, whatever is in it."""

import ast
import re
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3 import api
from dbt.adapters.mzs3.compiled_job import render_copy_job, render_shard_job
from dbt.adapters.mzs3.export.monitor import RunContext
from dbt.include.mzs3 import PACKAGE_PATH

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))


def run(source: str, monkeypatch_calls: list[tuple[Any, ...]]) -> None:
    def record(spark: Any, query: str, **kwargs: Any) -> None:
        monkeypatch_calls.append((spark, query, kwargs))

    original, api.copy_to_s3 = api.copy_to_s3, record
    try:
        provided = {
            "spark": "SPARK",
            "aws_connections": {"c": 1},
            "as_of": 5,
            "cancelled": None,
            "tell": print,
            "scrub": str.upper,
            "invocation_id": "i-1",
        }
        exec(compile(source, "job.py", "exec"), provided)
    finally:
        api.copy_to_s3 = original


@given(TEXT, st.dictionaries(TEXT, TEXT | st.integers() | st.booleans() | st.lists(TEXT)))
def test_query_and_options_arrive_unchanged(query: str, options: dict[str, Any]) -> None:
    calls: list[tuple[Any, ...]] = []
    run(render_copy_job("model.p.m", query, options, schema="a", identifier="m"), calls)
    [(spark, received, kwargs)] = calls
    assert received.strip() == query.strip()
    assert kwargs == {
        "node": "model.p.m",
        "options": options,
        "connections": {"c": 1},
        "as_of": 5,
        "full_refresh": False,
        "cancelled": None,
        "context": RunContext(
            schema="a", identifier="m", invocation_id="i-1", tell=print, scrub=str.upper
        ),
    }
    assert spark == "SPARK"


def test_the_job_reads_well() -> None:
    source = render_copy_job(
        "model.p.orders",
        "select *\nfrom orders",
        {"location": "s3://b/p"},
        schema="analytics",
        identifier="orders",
        full_refresh=True,
    )
    assert source.startswith("# COPY TO S3 of model.p.orders, compiled by dbt-mzs3.\n")
    assert '\nQUERY = """\nselect *\nfrom orders\n"""\n' in source
    assert "    'location': 's3://b/p',\n" in source
    assert "    full_refresh=True,\n" in source
    assert "        schema='analytics',\n        identifier='orders',\n" in source


def test_jobs_import_the_api_and_nothing_else_of_ours() -> None:
    assert api.__all__ == ["RunContext", "copy_to_s3", "create_table", "persist_shard"]
    assert all(hasattr(api, name) for name in api.__all__)
    copy = render_copy_job("m", "select 1", {}, schema="a", identifier="m")
    shard = render_shard_job("m", "select 1", {})
    assert imports(copy) == [("dbt.adapters.mzs3.api", ["RunContext", "copy_to_s3"])]
    assert imports(shard) == [("dbt.adapters.mzs3.api", ["persist_shard"])]


def test_macros_import_the_api_and_nothing_else_of_ours() -> None:
    macros = Path(PACKAGE_PATH).rglob("*.sql")
    found = [line for file in macros for line in file.read_text().splitlines()]
    ours = [line for line in found if re.search(r"\b(from|import) dbt\.adapters\.mzs3", line)]
    assert ours == ["from dbt.adapters.mzs3.api import create_table"]


def imports(source: str) -> list[tuple[str | None, list[str]]]:
    return [
        (node.module, [alias.name for alias in node.names])
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom)
    ]
