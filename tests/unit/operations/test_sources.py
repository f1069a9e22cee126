"""What users give the run-operations on sources, and the variables; Spark is not started."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3 import runner
from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.impl import Mzs3Adapter
from dbt.adapters.mzs3.operations import sources
from dbt.adapters.mzs3.project.sources import is_set, named_sources, variable
from dbt.adapters.mzs3.source.options import SourceDefinition
from dbt.adapters.mzs3.store.connection import AwsConnection


def node(table: str) -> Any:
    external = {"type": "s3_csv_source", "location": f"s3://lake/{table}"}
    return SimpleNamespace(
        unique_id=f"source.acme.lake.{table}",
        source_name="lake",
        name=table,
        schema="raw",
        identifier=table,
        external=SimpleNamespace(to_dict=lambda omit_none: external),
        columns={},
    )


@pytest.fixture
def adapter() -> Any:
    credentials = SimpleNamespace(
        secrets=[],
        method="thrift",
        has_session=False,
        runs_jobs=False,
        connections={"default": AwsConnection()},
    )
    config = SimpleNamespace(
        credentials=credentials,
        project_name="acme",
        cli_vars={},
        vars=SimpleNamespace(to_dict=dict),
        args=SimpleNamespace(FULL_REFRESH=True),
    )
    nodes = {one.unique_id: one for one in map(node, ["orders", "items"])}
    return SimpleNamespace(
        config=config, get_macro_resolver=lambda: SimpleNamespace(sources=nodes), overlaps={}
    )


def error_of(adapter: Any, operation: str, *arguments: Any) -> str:
    with pytest.raises(DbtRuntimeError) as raised:
        Mzs3Adapter.run_operation(adapter, operation, *arguments)
    return str(raised.value.msg)


def test_all_that_is_wrong_with_the_arguments_is_told(adapter: Any) -> None:
    text = error_of(adapter, "skip_s3_objects", None, [1, "a", None])
    assert text.splitlines() == [
        "skip_s3_objects has 3 problems in its configuration:",
        "  - source must be a table of a source, such as lake.orders, not None",
        "  - each of objects must be a text, not 1",
        "  - each of objects must be a text, not None",
    ]


@pytest.mark.parametrize("objects", [None, [], {"a": "b"}, 5])
def test_objects_are_a_list_that_is_not_empty(adapter: Any, objects: Any) -> None:
    text = error_of(adapter, "retry_s3_objects", "lake.orders", objects)
    assert text.splitlines()[1] == (
        "  - objects must be a list of keys, URIs or patterns of objects, such as "
        f"['orders/2.csv'], not {objects!r}"
    )


def test_a_source_of_several_tables_is_not_one(adapter: Any) -> None:
    text = error_of(adapter, "retract_s3_objects", "lake", ["a"])
    assert text == (
        "source must be a table of a source, such as lake.orders, not the whole of lake: "
        "lake.items, lake.orders"
    )


def test_all_that_is_wrong_with_the_arguments_of_a_preview_is_told(adapter: Any) -> None:
    text = error_of(adapter, "preview_s3_source", 5, {"rows": 0, "infer": True})
    assert text.splitlines()[1:] == [
        "  - source must be a table of a source, such as lake.orders, not 5",
        "  - rows must be a whole number from 1 to 100, not 0",
    ]


def test_an_unknown_source_is_told_with_one_that_is_near(adapter: Any) -> None:
    text = error_of(adapter, "reset_s3_source", "lake.order", True)
    assert "lake.order is not a source of type s3_csv_source" in text
    assert "did you mean lake.orders?" in text


def test_a_source_that_shares_its_relation_is_not_touched(adapter: Any) -> None:
    adapter.overlaps = {"source.acme.lake.orders": ["raw.orders is another's too"]}
    adapter.get_macro_resolver().sources["source.acme.lake.orders"].resource_type = "source"
    for operation, *arguments in (
        ("reset_s3_source", "lake.orders", True),
        ("skip_s3_objects", "lake.orders", ["1.csv"]),
        ("unlock_s3_source", "lake.orders"),
    ):
        assert error_of(adapter, operation, *arguments) == (
            "source lake.orders has 1 problem in its configuration:\n"
            "  - raw.orders is another's too"
        )
    # What only reads helps to choose which of the two stays.
    for operation in ("s3_source_status", "purify_s3_sources"):
        assert "lake.orders needs more than SQL" in error_of(adapter, operation, ["lake.orders"])
    preview = "preview_s3_source", "lake.orders", {}
    assert "lake.orders needs more than SQL" in error_of(adapter, *preview)


@pytest.mark.parametrize("confirm", [None, False, "true", 1])
def test_a_reset_that_is_not_confirmed_says_what_it_would_do(adapter: Any, confirm: Any) -> None:
    assert error_of(adapter, "reset_s3_source", "lake.orders", confirm) == (
        "lake.orders: reset_s3_source drops all rows and the ledger of lake.orders, and the next "
        "run ingests every object again. If that is what you want, say so: dbt run-operation "
        "reset_s3_source --args '{source: lake.orders, confirm: true}'"
    )


@pytest.mark.parametrize(
    ("external", "then"),
    [
        ({"after_commit": "tag"}, "every object again"),
        ({"after_commit": "delete"}, "what is still in the location"),
        ({"discover": [{"sqs_notifications": "q"}]},
         "only what the queue announces from then on"),
    ],
)  # fmt: skip
def test_a_reset_promises_no_object_that_the_source_would_not_find(
    adapter: Any, external: dict[str, Any], then: str
) -> None:
    nodes = adapter.get_macro_resolver().sources
    declared = nodes[ORDERS].external.to_dict(True) | external
    nodes[ORDERS].external = SimpleNamespace(to_dict=lambda omit_none: declared)
    text = error_of(adapter, "reset_s3_source", "lake.orders", False)
    assert f"and the next run ingests {then}. If that is what you want" in text


@pytest.mark.parametrize(
    "operation",
    [
        ("s3_source_status", None),
        ("purify_s3_sources", "lake.orders"),
        ("reset_s3_source", "lake.orders", True),
    ],
)
def test_sources_need_more_than_sql(adapter: Any, operation: Any) -> None:
    assert "lake.orders needs more than SQL, which is all that `method: thrift`" in error_of(
        adapter, *operation
    )


VARIABLE = "mzs3_full_refresh_sources"
ORDERS, ITEMS = "source.acme.lake.orders", "source.acme.lake.items"


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (None, set()),
        (False, set()),
        (True, {ORDERS, ITEMS}),
        ("lake.orders", {ORDERS}),
        (["lake.orders"], {ORDERS}),
        (["lake"], {ORDERS, ITEMS}),
        ([], set()),
    ],
)
def test_a_variable_names_sources(adapter: Any, value: Any, named: set[str]) -> None:
    adapter.config.cli_vars = {VARIABLE: value}
    assert named_sources(adapter, VARIABLE) == named


@pytest.mark.parametrize("value", [5, {"lake": "orders"}, ["lake.orders", 5]])
def test_a_variable_that_is_no_list_of_names(adapter: Any, value: Any) -> None:
    adapter.config.cli_vars = {VARIABLE: value}
    says = "must be true, false, or a list of sources such as [lake.orders], not"
    with pytest.raises(DbtRuntimeError) as raised:
        named_sources(adapter, VARIABLE)
    assert str(raised.value.msg) == f"the variable {VARIABLE} {says} {value!r}"


def test_a_variable_that_names_no_source(adapter: Any) -> None:
    adapter.config.cli_vars = {VARIABLE: ["lake.order"]}
    with pytest.raises(DbtRuntimeError, match=r"did you mean lake\.orders\?"):
        named_sources(adapter, VARIABLE)


def test_a_variable_is_looked_up_where_dbt_does(adapter: Any) -> None:
    adapter.config.vars = SimpleNamespace(
        to_dict=lambda: {"a": 1, "b": 1, "c": 1, "acme": {"a": 2, "b": 2}}
    )
    adapter.config.cli_vars = {"a": 3}
    assert [variable(adapter.config, name) for name in "abcd"] == [3, 2, 1, None]


def test_a_project_without_variables_has_none(adapter: Any) -> None:
    adapter.config.vars = SimpleNamespace(to_dict=lambda: {"acme": None})
    assert variable(adapter.config, "a") is None
    assert not is_set(adapter.config, "a")


@pytest.mark.parametrize("value", ["true", 1, [], "yes"])
def test_a_variable_that_is_neither_true_nor_false(adapter: Any, value: Any) -> None:
    adapter.config.cli_vars = {"mzs3_freshness_pending": value}
    with pytest.raises(DbtRuntimeError) as raised:
        is_set(adapter.config, "mzs3_freshness_pending")
    assert str(raised.value.msg) == (
        f"the variable mzs3_freshness_pending must be true or false, not {value!r}"
    )


def test_a_preview_shows_no_secret_of_an_error_in_it(
    adapter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    adapter.config.credentials.has_session = adapter.config.credentials.runs_jobs = True
    adapter.config.credentials.secrets = ["the-key"]
    monkeypatch.setattr(runner, "session_of", lambda _: None)
    monkeypatch.setattr(sources, "preview_source", lambda *_, **__: ["refused: the-key"])
    monkeypatch.setattr(sources, "fire_event", lambda note: said.append(note.msg))
    Mzs3Adapter.run_operation(adapter, "preview_s3_source", "lake.orders", {})
    assert said == ["refused: *****"]


def test_one_broken_source_does_not_hide_the_status_of_the_others(
    adapter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def read_status(_: Any, definition: SourceDefinition) -> str:
        if definition.name == "lake.items":
            raise SourceError("lake.items: broken")
        return definition.name

    adapter.config.credentials.has_session = adapter.config.credentials.runs_jobs = True
    monkeypatch.setattr(runner, "session_of", lambda _: None)
    monkeypatch.setattr(sources, "read_status", read_status)
    monkeypatch.setattr(sources, "status_table", list)
    monkeypatch.setattr(sources, "fire_event", lambda note: said.append(note.msg))
    assert error_of(adapter, "s3_source_status", None) == "lake.items: broken"
    assert said == ["lake.orders"]
