"""Options of models and keys of sources: checked, all problems at once."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.export.options import parse_options
from dbt.adapters.mzs3.shard.options import (
    ShardOptions,
    ShardSource,
    moment,
    parse_compaction,
    parse_shard_options,
    parse_shard_source,
)

NODE = "model.acme.orders"


def test_defaults() -> None:
    found = parse_shard_options(NODE, {"location": "s3://a/b"}, ["default"])
    assert found == ShardOptions("s3://a/b")
    assert (found.mode, found.encoding) == ("diff", "dual")
    assert found.sizes.max_file_size == 128 * 1024 * 1024


def test_all_problems_of_a_model_come_at_once() -> None:
    config: dict[str, Any] = {
        "mod": "diff",
        "encoding": "protobuf",
        "aws_connection": "lake",
        "column_defaults": {"a": None},
        "column_renames": ["a"],
        "column_types": {"a": "uid"},
        "sort_by": [1],
        "part_size": "1MB",
        "on_schema_change": "append",
    }
    with pytest.raises(ConfigError) as caught:
        parse_shard_options(NODE, config, ["default"])
    text = str(caught.value)
    for problem in (
        "10 problems",
        "column_types has 'uid', which is no type of shards",
        "sort_by must be a column's name, or a list of names, not [1]",
        "mod is not an option of persist_shard; did you mean mode?",
        "encoding must be one of dual, structured, codec",
        "aws_connection 'lake' is not in the profile",
        "column_defaults has None for a",
        "column_renames must be a mapping",
        "part_size must be at least 5MB",
        "on_schema_change must be one of ignore, fail",
        "location is required",
    ):
        assert problem in text


@pytest.mark.parametrize(
    "config",
    [
        {"part_size": "6GB"},
        {"part_size": "1MB"},
        {"max_file_size": "1TB"},
        {"max_file_size": "6TB", "part_size": "1GB"},
        {"max_file_size": "0MB"},
        {"location": "s3://b/x\n"},
        {"location": "s3://b/../x"},
        {"location": "'s3://b/./' || mz_now()"},
        {"location": "s3://b/x/ || mz_now()"},
        {"location": ""},
        {"parts": 10_001},
    ],
    ids=str,
)
def test_what_shards_and_exports_share_is_refused_in_the_same_words(config: Any) -> None:
    given = {"location": "s3://b/x", "max_multi_part_bytes_in_memory": "30GB", **config}
    told = []
    for parse in (parse_options, parse_shard_options):
        with pytest.raises(ConfigError) as caught:
            parse(NODE, given, ["default"])
        told.append(caught.value.problems)
    assert told[0] == told[1]


def test_a_compaction_is_refused_what_a_run_is() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_compaction({"max_file_size": "1TB"})
    assert caught.value.problems == (
        "max_file_size 1TB needs more than 10000 upload parts of 8MB; lower it",
    )


@pytest.mark.parametrize(
    ("renames", "problem"),
    [
        ({"a": "x", "b": "X"}, "column_renames has several renames to x"),
        ({"a": "x", "A": "y"}, "column_renames has several renames from a"),
    ],
)
def test_renames_are_of_one_column_to_one(renames: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse_shard_options(NODE, {"location": "s3://a/b", "column_renames": renames}, ["default"])


def test_yamls_own_values_are_expressions() -> None:
    given = {"location": "s3://a/b", "column_defaults": {"n": 50, "t": "'x'", "b": True}}
    found = parse_shard_options(NODE, given, ["default"])
    assert found.column_defaults == {"n": "50", "t": "'x'", "b": "True"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("latest", "latest"),
        (1700000000000, 1700000000000),
        ("1700000000000", 1700000000000),
        ("2023-11-14 22:13:20", 1700000000000),
        ("2023-11-14T22:13:20.5Z", 1700000000500),
        ("2023-11-14 23:13:20+01:00", 1700000000000),
        (dt.datetime(2023, 11, 14, 22, 13, 20), 1700000000000),
        (dt.date(1970, 1, 2), 86_400_000),
        ("20231114", 1699920000000),
        (0, 0),
        ("0", 0),
        (100_000_000_000, 100_000_000_000),
    ],
)
def test_moments(value: Any, expected: int | str) -> None:
    if value == "2023-11-14T22:13:20.5Z":
        value = "2023-11-14T22:13:20.500Z"  # before Python 3.11 a fraction has 3 or 6 digits
    assert moment(value) == expected


@pytest.mark.parametrize("value", [20231114, 1700000000, "1700000000", 5, -1])
def test_a_number_that_may_be_a_day_or_seconds_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"write a day in quotes.*and seconds times 1000"):
        moment(value)


@pytest.mark.parametrize("value", ["yesterday", True, 1.5, [1], "20231399", ""])
def test_what_is_no_moment(value: Any) -> None:
    with pytest.raises(ValueError, match="must be latest, a number of ms"):
        moment(value)


def test_a_source() -> None:
    external = {"type": "persist_shard", "location": "s3://a/b", "as_of": 1700000000000}
    external |= {"validate": True, "keep_hours": 0, "where": "id > 1"}
    found = parse_shard_source("lake.orders", external, ["id"], ["default"])
    assert (found.location.uri, found.as_of) == ("s3://a/b/", 1700000000000)
    assert found.validate
    assert (found.columns, found.where) == (("id",), "id > 1")
    assert (found.keep_ms, ShardSource("a", found.location).keep_ms) == (0, 86_400_000)


def test_all_problems_of_a_source_come_at_once() -> None:
    external = {"type": "persist_shard", "as_off": 5, "as_of": "x", "location": "b"}
    external |= {"where": "id in (select 1)"}
    with pytest.raises(ConfigError) as caught:
        parse_shard_source("lake.orders", external, [], ["default"])
    text = str(caught.value)
    for problem in (
        *(
            "4 problems",
            "as_off is not an option of persist_shard",
            "as_of must be",
            "must start with s3://",
        ),
        "where must be a condition on the shard's columns alone, without a query inside",
    ):
        assert problem in text
