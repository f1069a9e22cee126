"""`external.format`: what goes with it, what is found in an object, what is pinned."""

from dataclasses import replace

import pytest
from support.source.fields import parse, purify_names

from dbt.adapters.mzs3.errors import ConfigError, SourceError
from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.formats.read.format import RecordField
from dbt.adapters.mzs3.formats.read.jsonl import NumberField
from dbt.adapters.mzs3.source.operations.show_definition import (
    ShownDefinition,
    purified_sql,
    purified_yaml,
)
from dbt.adapters.mzs3.source.purify import PinnedDefinition, contradictions, purify

FOUND = (RecordField("id", "int64", "bigint"), RecordField("note", "string", "string"))
TYPED = ("avro", "parquet")


def problems(external=None, columns=(), **more):
    with pytest.raises(ConfigError) as raised:
        parse(external, columns, **more)
    return list(raised.value.problems)


def purify_problems(definition, found=FOUND):
    with pytest.raises(ConfigError) as raised:
        purify(definition, found)
    return list(raised.value.problems)


def test_it_is_csv_unless_said_otherwise():
    assert parse().format == parse(format="csv").format == "csv"
    assert parse(format="avro").format == "avro"
    assert problems(format="orc") == [
        "external.format must be one of csv, avro, parquet, jsonl, not 'orc'"
    ]


@pytest.mark.parametrize("name", TYPED)
def test_what_is_of_csv_alone_is_refused_all_at_once(name):
    csv_only = {
        "column_count": 2,
        "delimiter": "||",
        "quote": "'",
        "escape": "'",
        "null": "N",
        "encoding": "latin1",
    }
    of_texts = {"compression": "gzip", "on_bad_row": "reject", "max_rejects": 1}
    given = {**csv_only, **of_texts}
    assert {*problems(given, header=False, header_match="some", format=name)} == {
        *(f"external.{key} is for CSV, but external.format is {name}" for key in csv_only),
        *(
            f"external.{key} is for CSV and JSON lines, but external.format is {name}"
            for key in of_texts
        ),
        f"external.header is false, but objects of the format {name} name their fields; leave it "
        "out, or list the names",
        "external.header_match must be one of exact, reorder, subset, not 'some'",
    }


@pytest.mark.parametrize("name", TYPED)
def test_what_is_of_every_format_is_taken(name):
    definition = parse(
        format=name,
        header=["id", "note"],
        header_match="subset",
        on_header_mismatch="skip_object",
        max_objects_per_run=5,
        columns=[{"name": "a", "data_type": "INT"}, {"name": "b", "data_type": "string"}],
    )
    assert definition.header == ("id", "note")
    assert (definition.reading.header_match, definition.reading.skips) == ("subset", True)
    assert purify(definition, None).sql() == (
        f"(a, b) FORMAT {name.upper()} WITH HEADER COLUMNS (id, note)"
    )


def test_json_lines_take_what_is_of_texts():
    definition = parse(
        format="jsonl",
        header=["id", "note"],
        header_match="subset",
        on_header_mismatch="fail",
        compression="gzip",
        on_bad_row="reject",
        max_rejects=5,
        columns=[{"name": "a", "data_type": "INT"}, {"name": "b", "data_type": "string"}],
    )
    assert definition.compression == "gzip"
    assert (definition.reading.rejects, definition.reading.max_rejects) == (True, 5)
    assert purify(definition, None).sql() == ("(a, b) FORMAT JSONL WITH HEADER COLUMNS (id, note)")


def test_what_json_lines_can_not_have_is_refused_all_at_once():
    given = {"quote": "'", "encoding": "latin1", "header": ["id", "id"]}
    aliases = [{"name": name, "data_type": "int"} for name in "ab"]
    assert problems(given, aliases, on_header_mismatch="skip_object", format="jsonl") == [
        "external.quote is for CSV, but external.format is jsonl",
        "external.encoding is for CSV, but external.format is jsonl",
        "external.on_header_mismatch: skip_object is for objects with one header, but with the "
        "format jsonl each record has its own keys; leave it out, and see on_bad_row",
        "external.header has a name twice, but a record of JSON lines has each key once",
    ]
    assert problems(format="jsonl", header=False) == [
        "external.header is false, but objects of the format jsonl name their fields; leave it "
        "out, or list the names"
    ]


def test_a_number_of_json_may_be_declared_as_any_type_of_numbers():
    found = (NumberField("a", "number", "bigint"), NumberField("b", "number", "double"))
    assert purify(parse(format="jsonl"), found).columns == (
        Column("a", "bigint"),
        Column("b", "double"),
    )
    for kind in ("tinyint", "bigint", "decimal(9,2)", "float", "double"):
        aliases = [{"name": name, "data_type": kind} for name in "ab"]
        pinned = purify(parse(format="jsonl", columns=aliases), found)
        assert {column.data_type for column in pinned.columns} == {kind}
    aliases = [{"name": "a", "data_type": "string"}, {"name": "b", "data_type": "date"}]
    (first, second) = purify_problems(parse(format="jsonl", columns=aliases), found)
    assert first.startswith("the header is (a, b): 'a' is number, which can't be read as string;")
    assert second.startswith("the header is (a, b): 'b' is number, which can't be read as date;")


def test_where_no_object_is_read_every_type_is_declared():
    listed = "external.header lists the names, so no object is read for their types: "
    assert problems(format="avro", header=["id", "note"]) == [
        listed + "declare `columns` with the data_type of each (id, note)"
    ]
    aliases = [{"name": "a", "data_type": "int"}, {"name": "b"}]
    assert problems(format="avro", header=["id", "note"], columns=aliases) == [
        listed + "declare the data_type of column b"
    ]


def test_what_is_not_declared_is_as_in_the_object():
    pinned = purify(parse(format="parquet"), FOUND)
    assert pinned.header == ("id", "note")
    assert pinned.columns == (Column("id", "bigint"), Column("note", "string"))
    aliases = [{"name": "a"}, {"name": "b", "data_type": "date"}]
    pinned = purify(parse(format="parquet", columns=aliases), FOUND)
    assert pinned.columns == (Column("a", "bigint"), Column("b", "date"))


def test_csv_has_texts_only():
    assert purify(parse(), [RecordField("id", "string", "string")]).columns == (Column("id"),)
    assert parse(columns=[{"name": "a"}]).columns == (Column("a", "string"),)


def test_a_field_that_is_always_null_is_a_string():
    void = [RecordField("id", "null", "void")]
    assert purify(parse(format="avro"), void).columns == (Column("id", "string"),)


def test_no_object_to_learn_from():
    with pytest.raises(SourceError, match="has a header to learn the columns from"):
        purify(parse(format="avro"), None)


def test_fields_that_are_no_columns_are_all_named():
    found = (
        *FOUND,
        RecordField("tags", "list<item: string>", None),
        RecordField("x", "struct<>", None),
    )
    how = (
        "; declare another data_type, or leave it out: declare the others as `columns`, and "
        "`header_match: subset`"
    )
    header = "the header is (id, note, tags, x): "
    aliases = [{"name": n, "data_type": "boolean"} for n in "abcd"]
    tags = f"{header}'tags' is list<item: string>, which no column can be{how}"
    x = f"{header}'x' is struct<>, which no column can be{how}"
    assert purify_problems(parse(format="parquet"), found) == [tags, x]
    assert purify_problems(parse(format="parquet", columns=aliases), found) == [
        f"{header}'id' is int64, which can't be read as boolean{how}",
        tags,
        x,
    ]
    # Of names and types together.
    reserved = (RecordField("_mz_x", "list<item: string>", None),)
    assert len(purify_problems(parse(format="parquet"), reserved)) == 2


def test_another_number_of_columns():
    aliases = [{"name": "a", "data_type": "boolean"}]
    assert purify_problems(parse(format="parquet", columns=aliases)) == [
        "1 columns are declared but the header has 2: (id, note). It has none of the names "
        "declared, (a), so they would be aliases: declare one for each, or the header's own names"
    ]


def test_the_format_is_pinned():
    pinned = purify(parse(format="parquet"), FOUND)
    assert PinnedDefinition.from_json(pinned.to_json()) == pinned
    assert contradictions(pinned, parse(format="parquet")) == []
    assert contradictions(pinned, parse(format="avro")) == [
        "the format is declared as 'avro' but was pinned as 'parquet'"
    ]
    changed = parse(format="parquet", columns=[{"name": "id", "data_type": "int"}, {"name": "n"}])
    assert contradictions(pinned, changed) == [
        "column 1 is declared as id int but was pinned as id bigint",
        "column 2 is declared as n string but was pinned as note string",
    ]


def test_the_pinned_definition_as_yaml_is_one_that_is_taken():
    definition = parse(format="parquet")
    pinned = purify(definition, FOUND)
    lines = purified_yaml(ShownDefinition(definition, pinned, True), {"format": "parquet"})
    assert lines[1:] == [
        "  external:",
        "    format: parquet",
        "    header: [id, note]",
        "  columns:",
        "    - {name: id, data_type: bigint}",
        "    - {name: note, data_type: string}",
    ]
    columns = [{"name": "id", "data_type": "bigint"}, {"name": "note", "data_type": "string"}]
    again = parse(format="parquet", header=["id", "note"], columns=columns)
    assert purify(again, None) == pinned
    assert contradictions(pinned, again) == []


def test_a_table_with_a_dot_in_its_name_is_shown_by_all_of_it():
    definition = replace(parse(), name="lake.orders-nz.2024")
    purified = ShownDefinition(definition, purify_names(definition, ("id",)), True)
    assert purified_sql(purified).startswith('CREATE SOURCE "orders-nz.2024" FROM S3 ')
    assert purified_yaml(purified, {})[0] == '- name: "orders-nz.2024"'
