"""What `external` may say, and every way it can be wrong."""

import pytest
from support.source.fields import parse

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.formats.read.columns import Column, canonical_type
from dbt.adapters.mzs3.formats.read.dialect import SourceDialect
from dbt.adapters.mzs3.store.location import S3Location


def problems(external=None, columns=(), **more):
    with pytest.raises(ConfigError) as raised:
        parse(external, columns, **more)
    assert raised.value.subject == "source lake.orders"
    return list(raised.value.problems)


def test_the_defaults():
    definition = parse()
    assert (definition.name, definition.schema, definition.identifier) == (
        "lake.orders",
        "raw",
        "orders",
    )
    assert definition.location == S3Location("acme-raw", "orders/")
    assert definition.pattern == "**"
    assert definition.header is True
    assert definition.columns == ()
    assert definition.dialect == SourceDialect()
    assert (definition.compression, definition.aws_connection) == ("by_suffix", "default")


def test_everything_that_can_be_said():
    definition = parse(
        pattern="**/*.csv",
        discover=["bucket_scan"],
        header=["id", "value"],
        header_match="exact",
        on_header_mismatch="fail",
        on_bad_row="fail",
        on_overwrite="fail",
        delimiter="|",
        quote="'",
        escape="'",
        null="\\N",
        encoding="utf8",
        compression="gzip",
        aws_connection="lake",
        columns=[{"name": "a", "data_type": "INT"}, {"name": "b", "description": "no type"}],
    )
    assert definition.header == ("id", "value")
    assert definition.columns == (Column("a", "int"), Column("b", "string"))
    assert definition.dialect == SourceDialect("|", "'", "'", "\\N")
    assert (definition.compression, definition.aws_connection) == ("gzip", "lake")


def test_the_escape_follows_the_quote():
    assert parse(quote="'").dialect.escape == "'"


def test_a_key_without_a_value_is_left_out():
    assert parse(pattern=None, file_format=None) == parse()


@pytest.mark.parametrize("key", [None, "None"], ids=["dbt 1.11", "dbt 1.12"])
def test_the_key_null_without_quotes_arrives_as_none_or_as_its_text(key):
    assert parse({key: "NULL"}).dialect.null == "NULL"


def test_without_a_header_columns_are_counted_or_declared():
    assert parse(header=False, column_count=2).column_count == 2
    assert parse(header=False, columns=[{"name": "a"}]).columns == (Column("a"),)


@pytest.mark.parametrize(
    ("external", "says"),
    [
        ({"type": "csv"}, "external.type must be s3_csv_source, not 'csv'"),
        ({"type": "S3_CSV_source"},
         "external.type must be s3_csv_source, not 'S3_CSV_source': did you mean s3_csv_source?"),
        ({"location": None}, "external.location is required, such as s3://bucket/prefix/"),
        ({"location": "acme"}, "external.location must start with s3://, not 'acme'"),
        ({"pattern": "a{"}, "external.pattern 'a{' has a { at character 2 that is not closed"),
        ({"pattern": 1}, "external.pattern must be a text, not 1; put it in quotes"),
        ({"header": "id"},
         "external.header must be true, false, or the list of names in the header"),
        ({"header": []},
         "external.header must be true, false, or the list of names in the header"),
        ({"header": ["a", 1]}, "external.header has 1, which is not a text; put it in quotes"),
        ({"header": ["a", "A"]},
         "external.header: columns 1 and 2 have the same name 'A' "
         "(Spark does not tell upper from lower case by default); declare `columns` to name them"),
        ({"header": False},
         "external.header is false, so the columns must be known: declare `columns`, or "
         "external.column_count"),
        ({"header": False, "column_count": 0},
         "external.column_count must be a whole number, 1 or more, not 0"),
        ({"header": False, "column_count": True},
         "external.column_count must be a whole number, 1 or more, not True"),
        ({"column_count": 2}, "external.column_count needs `header: false` beside it"),
        ({"on_new_columns": "add", "header": ["id"]},
         "external.on_new_columns: add learns names from headers, so leave out external.header"),
        ({"on_new_columns": "add", "header": False, "column_count": 1},
         "external.on_new_columns: add needs objects with a header, but external.header is false"),
        ({"on_new_columns": "add", "header_match": "subset"},
         "external.on_new_columns: add adds what header_match: subset leaves out; leave out one"),
        ({"on_new_columns": "add", "on_header_mismatch": "skip_object"},
         "external.on_new_columns: add takes what on_header_mismatch: skip_object would skip; "
         "leave out one"),
        ({"on_new_columns": "add", "format": "jsonl"},
         "external.on_new_columns is for CSV, Avro and Parquet, but external.format is jsonl"),
        ({"compression": "xz"},
         "external.compression must be one of by_suffix, none, gzip, zstd, bzip2, not 'xz'"),
        ({"aws_connection": "other"},
         "external.aws_connection 'other' is not in the profile; it has default, lake"),
        ({"delimiter": '|"|'}, "external: delimiter cannot contain quote or escape"),
        ({"delimiter": "a\n"}, "external: delimiter cannot be newline or carriage return"),
        ({"delimiter": "§"}, "external: delimiter must be a single one-byte character"),
        ({"delimiter": '"'}, "external: delimiter and quote must be different"),
        ({"delimiter": "\n"}, "external: delimiter cannot be newline or carriage return"),
        ({"null": "\n"}, "external: null representation cannot use newline or carriage return"),
        ({"location": "s3://"}, "external.location names no bucket: 's3://'"),
        ({"location": "s3://a b/"},
         "external.location names the bucket 'a b', and no bucket has such a name: it has "
         "letters, digits, dots, hyphens and underscores alone"),
        ({"null": "a,b"}, "external: delimiter must not appear in the null specification"),
        ({"escape": "\\", "quote": ""},
         "external: escape needs a quote: only quoted fields have escapes"),
        ({"escape": "\n"}, "external: escape cannot be newline or carriage return"),
        ({"escape": ","}, "external: delimiter and escape must be different"),
        ({"comment": "//"},
         "external: comment must be a single one-byte character, and no quote, delimiter or "
         "blank"),
        ({"comment": " "},
         "external: comment must be a single one-byte character, and no quote, delimiter or "
         "blank"),
        ({"trim_space": True, "delimiter": " "},
         "external: trim_space needs a delimiter, quote, escape and null that do not begin with "
         "a blank"),
        ({"trim_space": True, "null": " -"},
         "external: trim_space needs a delimiter, quote, escape and null that do not begin with "
         "a blank"),
        ({"delimiter": "||", "null": "\x1f"},
         "external: 0x1f can't be used beside a delimiter of several characters"),
        ({"comment": "#", "null": "#N/A"},
         "external: comment must not begin the null specification"),
        ({"bare_quotes": True, "quote": ""},
         "external: bare_quotes needs a quote: without one, every quote is bare"),
        ({"bare_quotes": True, "trim_space": True},
         "external: bare_quotes can't be combined with escape, trim_space or a delimiter of "
         "several characters, as it would be unclear where fields end"),
        ({"skip_lines": 1001},
         "external.skip_lines must be a whole number from 0 to 1000, not 1001"),
    ],
)  # fmt: skip
def test_one_problem(external, says):
    assert problems(external) == [says]


def test_missing_columns_may_be_the_null_of_yaml():
    assert parse(missing_columns=None).reading.fills
    assert parse(missing_columns="null").reading.fills
    assert not parse().reading.fills


def test_a_tab_written_without_double_quotes():
    assert problems(delimiter="\\t") == [
        'external.delimiter: write a tab as "\\t", in double quotes',
    ]


def test_an_unknown_key_with_a_guess_of_what_was_meant():
    (problem,) = problems(delimeter=";")
    assert problem.startswith(
        "external.delimeter is not an option of s3_csv_source; did you mean delimiter?"
    )


def test_columns_that_do_not_go_with_the_header():
    columns = [{"name": "a"}]
    assert problems(header=["x", "y"], columns=columns) == [
        "external.header has 2 names but 1 columns are declared"
    ]
    assert problems(header=False, column_count=2, columns=columns) == [
        "external.column_count is 2 but 1 columns are declared"
    ]


def test_aliases_may_name_a_header_that_has_a_name_twice():
    columns = [{"name": "a"}, {"name": "b"}]
    assert parse(header=["x", "x"], columns=columns).header == ("x", "x")


@pytest.mark.parametrize("kind", ["timestamp(9)", "timestamp_ntz(9)", "timestamp_ltz(7)"])
def test_a_timestamp_of_nanoseconds_is_one_error_that_names_the_column(kind):
    [problem] = problems(columns=[{"name": "at", "data_type": kind}])
    assert problem.startswith(f"column at: type {kind} is not supported by s3_csv_source")


def test_columns_with_wrong_names_and_types():
    columns = [
        {"name": "id", "data_type": "array<int>"},
        {"name": "ID"},
        {"name": ""},
        {"name": "_MZ_object"},
    ]
    assert problems(columns=columns) == [
        "column id: type array<int> is not supported by s3_csv_source; supported are string, "
        "boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), date, timestamp, "
        "timestamp_ntz, binary",
        "columns: columns 1 and 2 have the same name 'ID' "
        "(Spark does not tell upper from lower case by default)",
        "columns: column 3 has an empty name",
        "columns: column 4 is named '_MZ_object': names that start with _mz_ are reserved",
    ]


def test_all_problems_are_told_at_once():
    assert (
        len(problems(location="x", pattern="[", header="y", compression="z", on_bad_row="?")) == 5
    )


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("STRING", "string"),
        ("integer", "int"),
        (" long ", "bigint"),
        ("short", "smallint"),
        ("byte", "tinyint"),
        ("real", "float"),
        ("timestamp_ltz", "timestamp"),
        ("decimal", "decimal(10,0)"),
        ("dec(5)", "decimal(5,0)"),
        ("NUMERIC( 12 , 2 )", "decimal(12,2)"),
    ],
)
def test_types_have_one_spelling(text, canonical):
    assert canonical_type(text) == canonical


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("decimal(39,0)", "type decimal(39,0): the precision must be from 1 to 38"),
        ("decimal(2,3)", "type decimal(2,3): the scale must not be greater than the precision"),
    ],
)
def test_decimals_that_spark_has_not(text, says):
    with pytest.raises(ValueError) as raised:
        canonical_type(text)
    assert str(raised.value) == says
