"""Purified definitions as SQL and YAML, and names of every kind."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.source.fields import parse
from support.source.fields import purify_names as purify

from dbt.adapters.mzs3.source.operations.show_definition import (
    ShownDefinition,
    purified_lines,
    yaml_text,
)


def purified(found=("id", "value"), columns=(), **external):
    definition = parse(location="s3://bucket", pattern="**/*.csv", columns=columns, **external)
    return ShownDefinition(definition, purify(definition, found), is_pinned=True)


def test_the_yaml_pastes_back_as_what_was_purified():
    external = {
        "type": "s3_csv_source",
        "location": "s3://bucket",
        "pattern": "**/*.csv",
        "delimiter": "\t",
        "column_count": None,
    }
    lines = purified_lines(purified(columns=[{"name": "a"}, {"name": "null"}]), external)
    assert lines[0] == "lake.orders (pinned):"
    assert lines[2] == "  as YAML:"
    [table] = yaml.safe_load("\n".join(line.removeprefix("    ") for line in lines[3:]))
    assert table == {
        "name": "orders",
        "external": {
            "type": "s3_csv_source",
            "location": "s3://bucket",
            "pattern": "**/*.csv",
            "delimiter": "\t",
            "header": ["id", "value"],
        },
        "columns": [
            {"name": "a", "data_type": "string"},
            {"name": "null", "data_type": "string"},
        ],
    }


def test_a_source_that_gets_new_columns_says_so_and_pastes_back():
    options = {"on_new_columns": "add", "on_bad_row": "reject"}
    lines = purified_lines(purified(**options), {"type": "s3_csv_source", **options})
    assert lines[1].endswith(" WITH (on_new_columns = 'add', on_bad_row = 'reject');")
    [table] = yaml.safe_load("\n".join(line.removeprefix("    ") for line in lines[3:]))
    assert table["external"] == {"type": "s3_csv_source", **options, "header": True}


def test_what_is_not_pinned_yet_and_what_contradicts_is_said():
    before = purified()
    shown = ShownDefinition(
        before.declared, before.purified, False, ("the null is declared as 'x'",)
    )
    lines = purified_lines(shown, {})
    assert lines[0] == "lake.orders (not ingested yet; this would be pinned):"
    assert lines[-2:] == [
        "  the definition now says otherwise, and is refused:",
        "    - the null is declared as 'x'",
    ]


@given(st.text(st.characters(exclude_categories=["Cs"])))
@pytest.mark.parametrize("word", ["1e3", "0x1", "1_000", "2024-01-01", "yes", "~", "=", "<<"])
def test_any_text_is_itself_in_yaml(word, text):
    for one in (word, text):
        assert yaml.safe_load(f"- {yaml_text(one)}") == [one]
        assert yaml.safe_load(f"{{name: {yaml_text(one)}}}") == {"name": one}
