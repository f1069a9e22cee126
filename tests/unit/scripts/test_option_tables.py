"""The tables of options in the docs are those that the code makes."""

import re
from dataclasses import fields
from pathlib import Path

import option_tables
import pytest

from dbt.adapters.mzs3.export.options import CopyOptions
from dbt.adapters.mzs3.options.option import options_of
from dbt.adapters.mzs3.shard.options import ShardOptions, ShardSource
from dbt.adapters.mzs3.source.options import OPTIONS
from dbt.adapters.mzs3.store.connection import AwsConnection

PAGES = sorted(option_tables.DOCS.rglob("*.md"))
NAMED = re.compile(r"<!-- options of ([^:\n]+?)(?:: ([\w ]+))? -->")


def defaults(name: str) -> dict[str, str]:
    return {key: default for key, default, _ in option_tables.rows(name)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_tables_of_a_page_are_up_to_date(page: Path) -> None:
    assert page.read_text() == option_tables.updated(page), "run scripts/option_tables.py"


def test_every_table_is_whole_on_the_page_of_options() -> None:
    found = NAMED.findall((option_tables.DOCS / "options.md").read_text())
    assert sorted(found) == sorted((name, "") for name in option_tables.TABLES)


def test_a_page_asks_for_options_that_there_are() -> None:
    for page in PAGES:
        for name, keys in NAMED.findall(page.read_text()):
            assert set(keys.split()) <= set(defaults(name))


def test_every_option_has_its_row() -> None:
    assert list(defaults("copy_to_s3")) == list(options_of(CopyOptions))
    assert list(defaults("persist_shard")) == list(options_of(ShardOptions))
    assert list(defaults("s3_csv_source")) == list(OPTIONS)
    assert list(defaults("a persist_shard source")) == list(options_of(ShardSource))
    assert {*defaults("aws_connections"), "name"} == {one.name for one in fields(AwsConnection)}
    own = {"method", "host", "server_side_parameters", "aws_connections", "executor_timeout"}
    assert set(defaults("the profile")) == {*own, "spark_submit"}


def test_a_default_is_shown_as_a_user_writes_it() -> None:
    copy = defaults("copy_to_s3")
    assert copy["location"] == "required"
    assert copy["compression"].startswith("`none` (csv), `snappy` (parquet)")
    assert (copy["max_file_size"], copy["header"]) == ("`'256MB'`", "`false`")
    assert (copy["partition_by"], copy["object_tags"], copy["null"]) == ("none", "none", "empty")
    source = defaults("s3_csv_source")
    assert (source["discover"], source["on_overwrite"]) == ("`[bucket_scan]`", "`fail`")
    assert defaults("the profile")["method"] == "required"
