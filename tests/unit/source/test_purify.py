"""The seed's forms: what is left open, what is found, what is pinned."""

import json
from dataclasses import replace

import pytest
from support.source.fields import LEAST, parse
from support.source.fields import purify_names as purify

from dbt.adapters.mzs3.errors import ConfigError, SourceError
from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.formats.read.format import RecordField
from dbt.adapters.mzs3.source.purify import PinnedDefinition, contradictions, widen

FOUND = ("id", "value")
LOCATION = LEAST["location"]
ALIASES = [{"name": "a", "data_type": "int"}, {"name": "b"}]


def test_names_from_the_header_all_strings():
    pinned = purify(parse(), FOUND)
    assert pinned == PinnedDefinition(
        header=FOUND,
        columns=(Column("id", "string"), Column("value", "string")),
        options={
            "location": LOCATION,
            "format": "csv",
            "skip_lines": 0,
            "missing_columns": "fail",
            "extra_columns": "fail",
            "delimiter": ",",
            "record_delimiter": "lf",
            "quote": '"',
            "bare_quotes": False,
            "null": "",
            "trim_space": False,
            "skip_blank_lines": False,
            "comment": "",
            "encoding": "utf-8",
            "compression": "by_suffix",
        },
    )
    assert pinned.sql() == "FORMAT CSV WITH HEADER COLUMNS (id, value)"


def test_columns_are_aliases():
    pinned = purify(parse(columns=ALIASES), FOUND)
    assert (pinned.header, pinned.columns) == (FOUND, (Column("a", "int"), Column("b", "string")))
    assert pinned.sql() == "(a, b) FORMAT CSV WITH HEADER COLUMNS (id, value)"


def test_a_declared_header_needs_no_object():
    definition = parse(header=["id", "value"])
    assert purify(definition, None).sql() == "FORMAT CSV WITH HEADER COLUMNS (id, value)"


def test_no_header_and_a_number_of_columns():
    definition = parse(header=False, column_count=2)
    pinned = purify(definition, None)
    assert (pinned.header, pinned.columns) == (None, (Column("column1"), Column("column2")))
    assert pinned.sql() == "(column1, column2) FORMAT CSV WITH 2 COLUMNS"


def test_no_header_and_columns():
    pinned = purify(parse(header=False, columns=ALIASES), None)
    assert pinned.sql() == "(a, b) FORMAT CSV WITH 2 COLUMNS"


def test_names_are_quoted_where_they_must_be():
    pinned = purify(parse(), ("Id", 'say "x", y', "ok_1"))
    assert pinned.sql() == 'FORMAT CSV WITH HEADER COLUMNS ("Id", "say ""x"", y", ok_1)'


def test_a_header_that_is_needed_and_not_found():
    with pytest.raises(SourceError) as raised:
        purify(parse(pattern="*.csv"), None)
    assert str(raised.value) == (
        "lake.orders: no object at s3://acme-raw/orders/ that matches '*.csv' has a header to "
        "learn the columns from. Put one there, or declare the names as `header: [name, ...]`"
    )


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (("id", "ID"), "columns 1 and 2 have the same name 'ID' "
                       "(Spark does not tell upper from lower case by default)"),
        (("\u0131d", "x", "id"), "columns 1 and 3 have names that Spark takes for one, "
                                 "'\u0131d' and 'id'"),
        (("\u017fum", "sum"), "columns 1 and 2 have names that Spark takes for one, "
                             "'\u017fum' and 'sum'"),
        (("\u03c2", "\u03c3"), "columns 1 and 2 have names that Spark takes for one, "
                             "'\u03c2' and '\u03c3'"),
        (("\u0130d", "id"), "columns 1 and 2 have names that Spark takes for one, "
                           "'\u0130d' and 'id'"),
        (("id", ""), "column 2 has an empty name"),
        (("_mz_record",), "column 1 is named '_mz_record': names that start with _mz_ are "
                          "reserved"),
    ],
)  # fmt: skip
def test_headers_that_cannot_name_columns(header, says):
    with pytest.raises(ConfigError) as raised:
        purify(parse(), header)
    (problem,) = raised.value.problems
    assert f": {says}; declare `columns` to name them" in problem


def test_aliases_name_any_header():
    assert purify(parse(columns=ALIASES), ("x", "x")).header == ("x", "x")


def test_a_pinned_header_whose_names_are_one_to_spark_is_an_error_with_its_way_out():
    """Such headers were pinned once, and then no query could read the source."""
    pinned = replace(purify(parse(), ("x", "y")), header=("\u0131d", "id"))
    (difference,) = contradictions(pinned, parse())[:1]
    assert difference.endswith(
        "columns 1 and 2 have names that Spark takes for one, '\u0131d' and 'id'; declare "
        "`columns` to name them"
    )


@pytest.mark.parametrize("match", ["reorder", "subset"])
@pytest.mark.parametrize(
    ("header", "says"),
    [
        (("x", "x"), "columns 1 and 2 have the same name 'x'"),
        (("x", ""), "column 2 has an empty name"),
    ],
)
def test_a_header_whose_names_do_not_tell_its_columns(match, header, says):
    with pytest.raises(ConfigError) as raised:
        purify(parse(columns=ALIASES, header_match=match), header)
    (problem,) = raised.value.problems
    assert problem.endswith(
        f": {says}, so its columns can't be told by name as header_match: {match} does; leave out "
        "header_match, or give each object's columns names of their own"
    )


def test_names_that_differ_in_case_tell_columns():
    pinned = purify(parse(columns=ALIASES, header_match="subset"), ("id", "ID"))
    assert pinned.header == ("id", "ID")


def test_aliases_of_another_number():
    with pytest.raises(ConfigError) as raised:
        purify(parse(columns=ALIASES), ("id",))
    assert raised.value.problems == (
        "2 columns are declared but the header has 1: (id). It has none of the names declared, "
        "(a, b), so they would be aliases: declare one for each, or the header's own names",
    )


@pytest.mark.parametrize(
    "definition",
    [
        parse(),
        parse(columns=ALIASES),
        parse(header=False, column_count=2),
        parse(delimiter="\t", quote="'", null="\\N", compression="gzip", encoding="cp1252"),
    ],
)
def test_json_there_and_back(definition):
    pinned = purify(definition, FOUND)
    assert PinnedDefinition.from_json(pinned.to_json()) == pinned


def test_an_option_that_is_declared_since_a_definition_was_pinned_has_its_default():
    pinned = purify(parse(), FOUND)
    stored = json.loads(pinned.to_json())
    del stored["options"]["null"]
    assert PinnedDefinition.from_json(json.dumps(stored)) == pinned


@pytest.mark.parametrize("text", ["{}", "[]", "1", "no JSON", '{"header": 1, "columns": []}'])
def test_what_is_no_pinned_definition_is_refused(text):
    with pytest.raises(ValueError):
        PinnedDefinition.from_json(text)


def test_where_a_header_was_found_makes_no_other_definition():
    pinned = purify(parse(), FOUND)
    elsewhere = replace(pinned, origin="s3://acme-raw/orders/2.csv")
    assert elsewhere == pinned
    assert PinnedDefinition.from_json(elsewhere.to_json()).origin == elsewhere.origin


def test_the_definition_it_was_pinned_from_contradicts_nothing():
    for definition in (
        parse(),
        parse(columns=ALIASES),
        parse(header=["id", "value"]),
        parse(header=False, column_count=2),
    ):
        assert contradictions(purify(definition, FOUND), definition) == []


def test_naming_the_header_that_was_discovered_contradicts_nothing():
    assert contradictions(purify(parse(), FOUND), parse(header=["id", "value"])) == []


def test_another_pattern_contradicts_nothing():
    assert contradictions(purify(parse(pattern="**/*.csv"), FOUND), parse(pattern="1.csv")) == []


def test_another_way_with_what_does_not_fit_contradicts_nothing():
    now = parse(
        header_match="subset",
        on_header_mismatch="skip_object",
        on_bad_row="reject",
        max_rejects=5,
    )
    assert contradictions(purify(parse(), FOUND), now) == []


@pytest.mark.parametrize(
    ("then", "now", "says"),
    [
        (parse(), parse(header=False, column_count=2),
         ["it is declared without a header but was pinned with one"]),
        (parse(header=False, column_count=2), parse(),
         ["it is declared with a header but was pinned without one"]),
        (parse(columns=ALIASES), parse(header=["id", "v"], columns=ALIASES),
         ["the header is declared as (id, v) but was pinned as (id, value)"]),
        (parse(), parse(columns=ALIASES),
         ["column 1 is declared as a int but was pinned as id string",
          "column 2 is declared as b string but was pinned as value string"]),
        (parse(columns=ALIASES), parse(columns=ALIASES[:1]),
         ["1 columns are declared but 2 were pinned"]),
        (parse(header=False, column_count=2), parse(header=False, column_count=3),
         ["3 columns are declared but 2 were pinned"]),
        (parse(), parse(location="s3://acme-raw/moved"),
         ["the location is declared as 's3://acme-raw/moved/' but was pinned as "
          "'s3://acme-raw/orders/'"]),
        (parse(delimiter=";", null="-"), parse(compression="gzip", quote="'"),
         ["the delimiter is declared as ',' but was pinned as ';'",
          "the quote is declared as \"'\" but was pinned as '\"'",
          "the null is declared as '' but was pinned as '-'",
          "the compression is declared as 'gzip' but was pinned as 'by_suffix'"]),
        (parse(escape="\\"), parse(quote="'"),
         ["the quote is declared as \"'\" but was pinned as '\"'",
          "the escape is declared as \"'\" but was pinned as '\\\\'"]),
        (parse(quote="'"), parse(quote="'", escape="\\"),
         ["the escape is declared as '\\\\' but was pinned as \"'\""]),
        (parse(), parse(encoding="latin-1"),
         ["the encoding is declared as 'iso8859-1' but was pinned as 'utf-8'"]),
        (parse(delimiter=";"), parse(header=False, column_count=2),
         ["the delimiter is declared as ',' but was pinned as ';'",
          "it is declared without a header but was pinned with one"]),
    ],
)  # fmt: skip
def test_what_contradicts(then, now, says):
    assert contradictions(purify(then, FOUND), now) == says


def fields(*names: str) -> tuple[RecordField, ...]:
    return tuple(RecordField(name, "string", "string") for name in names)


def test_a_new_name_widens_what_is_pinned():
    definition = parse(on_new_columns="add", header_match="reorder", columns=[
        {"name": "value"}, {"name": "id", "data_type": "int"},
    ])  # fmt: skip
    pinned = purify(definition, FOUND)
    assert widen(definition, pinned, fields("value", "id")) is None
    wider = widen(definition, pinned, fields("note", "value", "id", "at"))
    assert wider is not None
    assert wider.header == ("id", "value", "note", "at")
    assert [column.name for column in wider.columns] == ["value", "id", "note", "at"]
    assert [column.name for column in wider.fetched()] == ["id", "value", "note", "at"]
    assert [column.is_added for column in wider.columns] == [False, False, True, True]
    read = PinnedDefinition.from_json(wider.to_json())
    assert (read, [one.is_added for one in read.columns]) == (wider, [False, False, True, True])
    assert contradictions(wider, definition) == []


WIDE = [{"name": "id"}, {"name": "note", "data_type": "int"}, {"name": "value"}]


@pytest.mark.parametrize(
    ("columns", "options", "says"),
    [
        ((), {}, []),
        (WIDE[::2], {}, []),
        (WIDE, {}, []),
        ([*WIDE, {"name": "later"}], {"on_new_columns": "add"}, []),
        ([*WIDE, {"name": "later"}], {}, ["4 columns are declared but 3 were pinned"]),
        (WIDE[:2], {}, ["2 columns are declared but 3 were pinned"]),
        ([WIDE[0], {"name": "note"}, WIDE[2]], {},
         ["column 3 is declared as note string but was pinned as note int"]),
    ],
)  # fmt: skip
def test_what_was_added_need_not_be_declared_and_may_stand_anywhere(columns, options, says):
    before = parse(on_new_columns="add", columns=WIDE)
    pinned = widen(before, purify(parse(), FOUND), fields("id", "value", "note"))
    assert pinned is not None
    assert contradictions(pinned, parse(columns=columns, **options)) == says


def test_a_first_object_may_lack_what_is_declared_and_have_what_is_not():
    definition = parse(on_new_columns="add", columns=WIDE)
    pinned = purify(definition, ("extra", "ID"))
    assert [(one.name, one.is_added) for one in pinned.columns] == [("id", False), ("extra", True)]
    assert (pinned.header, pinned.fields) == (("extra", "ID"), (1, 0))
    assert contradictions(pinned, definition) == []
    wider = widen(definition, pinned, fields("extra", "ID", "Note"))
    assert wider is not None
    assert wider.columns[-1] == Column("note", "int")
    assert contradictions(wider, definition) == []
    aliases = parse(on_new_columns="add", columns=ALIASES)
    assert [one.name for one in purify(aliases, FOUND).columns] == ["a", "b"]
