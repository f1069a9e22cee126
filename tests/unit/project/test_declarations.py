"""What is wrong with a parsed project is told at once, for every command as it needs it."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.artifacts.resources.v1.source_definition import ExternalTable
from dbt_common.exceptions import CompilationError
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3 import dbt_log
from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.export.options import CopyOptions, parse_options
from dbt.adapters.mzs3.options.option import options_of
from dbt.adapters.mzs3.project.declarations import check_declarations
from dbt.adapters.mzs3.project.sources import source_definition
from dbt.adapters.mzs3.shard.options import ShardOptions, parse_shard_options, parse_shard_source
from dbt.adapters.mzs3.source.options import OPTIONS, SourceDefinition

CONNECTIONS = ["default", "lake"]


def model(name: str, kind: str, given: dict[str, Any], **unrendered: Any) -> Any:
    known = {"on_schema_change": "ignore", "column_types": {}, **unrendered}
    return SimpleNamespace(
        unique_id=f"model.acme.{name}",
        original_file_path=f"models/{name}.sql",
        resource_type="model",
        config=SimpleNamespace(materialized=kind, extra=given, **known),
        unrendered_config=unrendered,
        config_call_dict=given,
        patch_path=None,
    )


def source(name: str, **external: Any) -> Any:
    return SimpleNamespace(
        unique_id=f"source.acme.lake.{name}",
        original_file_path="models/lake.yml",
        resource_type="source",
        source_name="lake",
        name=name,
        schema="raw",
        identifier=name,
        external=ExternalTable.from_dict(external),
        columns={},
    )


def manifest(*nodes: Any) -> Any:
    return SimpleNamespace(
        nodes={one.unique_id: one for one in nodes if one.resource_type != "source"},
        sources={one.unique_id: one for one in nodes if one.resource_type == "source"},
        files={},
    )


HERE = {"location": "s3://a/b"}
OF_DBT_TOO = {"on_schema_change": "ignroe", "column_types": {"id": "uid"}}
WRONG = manifest(
    model("exported", "copy_to_s3", {"locaton": "s3://a/b", "format": "cvs"}),
    model("kept", "persist_shard", {**HERE, "encodng": "dual"}, **OF_DBT_TOO),
    model("plain", "table", {"locaton": "s3://a/b"}),
    source("orders", type="s3_csv_source", location="s3://a", headers=True),
    source("history", type="persist_shard", location="b", as_off="latest", aws_connection="lkae"),
    source("nearly", type="perist_shard", location="s3://a"),
    source("others", type="parquet", location="s3://a", headers=True),
)
SHARED = {"source.acme.lake.history": ["raw.history is a relation of others too"]}
TOLD = """\
model.acme.exported (models/exported.sql) has 3 problems in its configuration:
  - locaton is not an option of copy_to_s3; did you mean location?
  - format must be one of …, not 'cvs'
  - location is required: 's3://bucket/prefix' or a SQL expression for one
model.acme.kept (models/kept.sql) has 3 problems in its configuration:
  - encodng is not an option of persist_shard; did you mean encoding?
  - on_schema_change must be one of …, not 'ignroe'
  - column_types has 'uid', which is no type of shards; those are …
source lake.orders (models/lake.yml) has 1 problem in its configuration:
  - external.headers is not an option of s3_csv_source; did you mean header?
source lake.history (models/lake.yml) has 4 problems in its configuration:
  - as_off is not an option of persist_shard; did you mean as_of?
  - location must start with s3://, not 'b'
  - aws_connection 'lkae' is not in the profile; it has default, lake
  - raw.history is a relation of others too
source lake.nearly (models/lake.yml) has 1 problem in its configuration:
  - type must be persist_shard, not 'perist_shard'"""


def cut(text: str) -> str:
    """Without the lists of all that is known."""
    text = re.sub(r"one of .*, not", "one of …, not", text)
    return re.sub(r"(known|those) are .*", r"\1 are …", text)


@pytest.mark.parametrize("command", ["parse", "compile"])
def test_commands_that_run_nothing_fail_with_all_that_is_wrong(command: str) -> None:
    with pytest.raises(CompilationError) as caught:
        check_declarations(command, WRONG, CONNECTIONS, SHARED)
    assert cut(str(caught.value.msg)) == TOLD


@pytest.mark.parametrize("command", ["run", "build"])
def test_runs_are_warned_as_what_does_not_need_it_still_runs(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[str] = []
    monkeypatch.setattr(dbt_log.logger, "warning", warned.append)
    check_declarations(command, WRONG, CONNECTIONS, SHARED)
    assert cut("\n".join(warned)) == TOLD


@pytest.mark.parametrize("command", ["list", "test", "run-operation", "freshness", None])
def test_other_commands_go_on(command: str | None) -> None:
    check_declarations(command, WRONG, CONNECTIONS, SHARED)


def test_what_is_right_is_not_spoken_of() -> None:
    right = manifest(
        model("exported", "copy_to_s3", {"location": "'s3://a/' || mz_now()"}),
        model("kept", "persist_shard", HERE),
        source("orders", type="s3_csv_source", location="s3://a"),
        source("history", type="persist_shard", location="s3://a"),
        source("plain"),
    )
    check_declarations("parse", right, CONNECTIONS, {})


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)


@pytest.mark.parametrize(
    "value", [[], {}, [[]], True, 0, -1, 0.5, float("nan"), "", "\0"], ids=repr
)
@pytest.mark.parametrize("kind", [CopyOptions, ShardOptions, SourceDefinition])
def test_a_value_of_any_type_is_taken_or_refused(kind: Any, value: Any) -> None:
    for key, one in options_of(kind).items():
        try:
            one.convert(value)
        except ValueError:
            continue
        except Exception as exc:
            raise AssertionError(f"{key} of {value!r}") from exc


def some_of(keys: Any) -> Any:
    return st.dictionaries(st.sampled_from([*keys, "unheard_of"]), ANY, max_size=4)


@given(
    some_of(options_of(CopyOptions)),
    some_of(options_of(ShardOptions)),
    some_of(OPTIONS),
    some_of(["as_of", "validate", "aws_connection", "location"]),
)
def test_whatever_is_given_it_is_taken_or_told(
    copy: dict[str, Any], shard: dict[str, Any], csv: dict[str, Any], read: dict[str, Any]
) -> None:
    for parse in (
        lambda: parse_options("m", {**HERE, **copy}, CONNECTIONS),
        lambda: parse_shard_options("m", {**HERE, **shard}, CONNECTIONS),
        lambda: source_definition(
            source("s", **{"type": "s3_csv_source", **HERE, **csv}), CONNECTIONS
        ),
        lambda: parse_shard_source(
            "s", {"type": "persist_shard", **HERE, **read}, [], CONNECTIONS
        ),
    ):
        try:
            parse()
        except ConfigError as exc:
            assert exc.problems
