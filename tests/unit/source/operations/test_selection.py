"""What users may call an object: URIs and expressions, without a ledger to look them up in."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.source.executor.pattern import Pattern
from dbt.adapters.mzs3.source.operations.object_actions import parse_names
from dbt.adapters.mzs3.source.report import objects_hint, reset_hint
from dbt.adapters.mzs3.store.location import S3Location

LOCATION = S3Location("acme-raw", "orders/")


def wanted(name, location=LOCATION):
    [found] = parse_names("skip_s3_objects", [name], location)
    return found


@pytest.mark.parametrize(
    ("name", "uris"),
    [
        ("s3://acme-raw/orders/1.csv", ("s3://acme-raw/orders/1.csv",)),
        ("orders/1.csv", ("s3://acme-raw/orders/1.csv", "s3://acme-raw/orders/orders/1.csv")),
        ("1.csv", ("s3://acme-raw/1.csv", "s3://acme-raw/orders/1.csv")),
    ],
)
def test_a_name_is_a_uri_a_key_or_a_key_below_the_location(name, uris):
    assert wanted(name).uris == uris
    assert wanted(name).expression is None


def test_a_key_of_a_whole_bucket_is_one_thing_only():
    assert wanted("1.csv", S3Location("acme-raw", "")).uris == ("s3://acme-raw/1.csv",)


@pytest.mark.parametrize(
    ("pattern", "uri", "matches"),
    [
        ("*.csv", "s3://acme-raw/orders/1.csv", True),
        ("*.csv", "s3://acme-raw/orders/2024/1.csv", False),
        ("**/*.csv", "s3://acme-raw/orders/2024/1.csv", True),
        ("*.csv", "s3://acme-raw/orders2/1.csv", False),
        ("s3://acme-raw/orders/202[45]/*", "s3://acme-raw/orders/2025/1.csv", True),
        ("s3://acme-raw/orders/*", "s3://acme-raw/orders/1.csv\n", True),
        ("{1,2}.csv", "s3://acme-raw/orders/3.csv", False),
    ],
)
def test_a_pattern_is_matched_against_the_whole_of_a_name(pattern, uri, matches):
    # Java's \z, the very end, is Python's \Z.
    expression = wanted(pattern).expression.replace(r"\z", r"\Z").replace("(?s)", "(?s:", 1) + ")"
    assert bool(re.search(expression, uri)) == matches


@given(st.text("ab/*?[]!-{},", min_size=1), st.text("ab/,-", max_size=6))
def test_a_pattern_for_spark_takes_what_it_takes_in_python(pattern, key):
    try:
        compiled = Pattern(pattern)
    except ValueError:
        return
    assert bool(re.fullmatch(compiled.expression, key)) == compiled.matches(key)


def test_every_problem_of_the_names_is_told():
    with pytest.raises(ConfigError) as raised:
        parse_names("skip_s3_objects", ["s3://other/1.csv", "[a", "", "1.csv"], LOCATION)
    assert raised.value.subject == "skip_s3_objects"
    assert raised.value.problems == (
        "s3://other/1.csv is not in the source's bucket, acme-raw",
        "'[a' has a [ at character 1 that is not closed",
        "the name of an object is empty",
    )


def test_a_command_in_an_error_survives_the_shell():
    assert objects_hint("skip_s3_objects", "lake.orders", ["s3://b/it's"]) == (
        "dbt run-operation skip_s3_objects --args "
        "'{source: lake.orders, objects: [\"s3://b/it'\\''s\"]}'"
    )
    assert reset_hint("lake.orders") == (
        "dbt run-operation reset_s3_source --args '{source: lake.orders, confirm: true}'"
    )
