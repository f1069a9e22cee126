"""The options of a copy_to_s3 model: defaults, and every problem at once."""

from typing import Any

import pytest

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.export.options import CopyOptions, parse_options, reader_warnings
from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.write import FORMATS
from dbt.adapters.mzs3.formats.write.csv.format import CsvFormat


def parse(**config: Any) -> CopyOptions:
    return parse_options("model.p.m", {"location": "s3://b/p", **config}, {"default", "lake"})


def problems(**config: Any) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as failure:
        parse(**config)
    return failure.value.problems


def test_defaults_are_those_of_postgresql_and_the_docs() -> None:
    options = parse()
    assert options == CopyOptions("s3://b/p")
    assert options.sizes.max_file_size == 256 * 1024 * 1024
    assert options.sizes.part_size == 8 * 1024 * 1024
    assert options.sizes.max_multi_part_bytes_in_memory == 100 * 1024 * 1024
    assert options.format == CsvFormat("none", False, CsvDialect(",", '"', '"', ""))
    assert options.parts is None


def test_every_option_is_read() -> None:
    options = parse(
        aws_connection="lake",
        format="csv",
        max_file_size="1 GB",
        part_size="16MB",
        max_multi_part_bytes_in_memory="64MB",
        parts=7,
        header=True,
        delimiter=";",
        quote="'",
        escape="\\",
        null="\\N",
        force_quote=["a", "b"],
        compression="gzip",
        on_existing="overwrite",
        partition_by=["c", "d"],
        encryption="aws:kms",
        kms_key_id="key",
        storage_class="STANDARD_IA",
        object_tags={"team": "a+b"},
        acl="bucket-owner-full-control",
    )
    assert options.on_existing == "overwrite"
    assert options.partition_by == ("c", "d")
    assert options.properties.for_files() == {
        "ServerSideEncryption": "aws:kms",
        "SSEKMSKeyId": "key",
        "StorageClass": "STANDARD_IA",
        "Tagging": "team=a%2Bb",
        "ACL": "bucket-owner-full-control",
    }
    assert "StorageClass" not in options.properties.for_notes()
    assert options.format == CsvFormat("gzip", True, CsvDialect(";", "'", "\\", "\\N"), ("a", "b"))
    assert (options.aws_connection, options.parts) == ("lake", 7)
    assert (options.sizes.max_file_size, options.sizes.part_size) == (1 << 30, 16 << 20)


def test_escape_follows_quote_as_in_postgresql() -> None:
    assert parse(quote="'").format.dialect.escape == "'"


def test_force_quote_takes_one_name_or_a_star() -> None:
    assert parse(force_quote="*").format.force_quote == ("*",)
    assert parse(force_quote="id").format.force_quote == ("id",)


def test_options_read_back_from_what_the_manifest_records() -> None:
    options = parse(parts=3, header=True, max_file_size="64kB", null="x", force_quote=["a"])
    assert parse(**options.as_config()) == options
    parquet = parse(format="parquet", partition_by="day")
    assert parse(**parquet.as_config()) == parquet
    single = parse(single_file="all.csv", on_existing="resume")
    assert parse(**single.as_config()) == single


def test_parquet_is_compressed_unless_it_is_told_not_to() -> None:
    assert parse(format="parquet").format.compression == "snappy"
    assert parse(format="parquet", compression="none").format.compression == "none"


def test_what_dbt_notes_of_a_python_model_is_no_option() -> None:
    assert parse(config_keys_used=["alias"], submission_method="session") == parse()


def test_all_problems_are_named_at_once() -> None:
    found = problems(
        max_file_sise="1MB",
        parts=0,
        header="yes",
        delimiter="||",
        aws_connection="lak",
        part_size="1MB",
    )
    assert found == (
        "max_file_sise is not an option of copy_to_s3; did you mean max_file_size?",
        "parts must be a whole number from 1 to 10000, not 0",
        "header must be true or false, not 'yes'",
        "part_size must be at least 5MB, which is the least that S3 takes, not 1MB",
        "delimiter must be a single one-byte character",
        "aws_connection 'lak' is not in the profile; it has default, lake",
    )


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"format": "json"}, f"format must be one of {', '.join(FORMATS)}, not 'json'"),
        ({"compression": "lz4"}, "compression must be one of none, gzip, zstd, not 'lz4'"),
        (
            {"format": "parquet", "header": True},
            "header is an option of CSV; format is parquet, so leave it out",
        ),
        ({"on_existing": "append"}, "on_existing must be one of fail, overwrite, resume"),
        ({"partition_by": ["a", "a"]}, "partition_by names a twice; leave one of them"),
        ({"single_file": "x/a.csv"}, "single_file must be a file name without a slash"),
        ({"single_file": "_manifest.json"}, "single_file must not begin with an underscore"),
        ({"single_file": "a.csv", "parts": 2}, "parts contradicts single_file"),
        ({"single_file": "a.csv", "partition_by": "a"}, "partition_by contradicts single_file"),
        ({"encryption": "sse"}, "encryption must be one of AES256, aws:kms, aws:kms:dsse"),
        ({"kms_key_id": "k"}, "kms_key_id needs encryption to be aws:kms"),
        ({"storage_class": "COLD"}, "storage_class must be one of STANDARD, "),
        ({"acl": "secret"}, "acl must be one of private, "),
        ({"object_tags": {"team": 1}}, "object_tags must map texts to texts; 'team' does not"),
        ({"object_tags": {str(i): "" for i in range(11)}}, "object_tags has 11 tags; S3 takes 10"),
        ({"object_tags": {"a": "b;c"}}, "object_tags 'a': 'b;c' is no tag for S3: up to 128"),
        ({"object_tags": {"a": "b\n\x1b"}}, "object_tags 'a': 'b\\n\\x1b' is no tag for S3"),
        ({"object_tags": {"": "b"}}, "is no tag for S3"),
        ({"object_tags": {"a": "𐊀" * 129}}, "is no tag for S3"),
        (
            {"object_tags": {"aws:a": "b"}},
            "object_tags 'aws:a': 'b': names that begin with aws: are AWS's own",
        ),
        ({"delimiter": "\0"}, "delimiter cannot hold a NUL byte"),
        ({"escape": "\0"}, "escape cannot hold a NUL byte"),
        ({"null": "a\0"}, "null cannot hold a NUL byte"),
        ({"single_file": "a.csv\n"}, "single_file has a control character in it"),
        ({"location": "s3://b/x\n"}, "location ends in a newline"),
        ({"location": "'s3://b/../x'"}, "location has a folder '..'"),
        ({"part_size": "6GB"}, "part_size can be 5GB at most, not 6GB"),
        ({"max_file_size": "6TB", "part_size": "1GB"}, "max_file_size can be 5TB at most"),
        ({"quote": ","}, "delimiter and quote must be different"),
        ({"null": "a,b"}, "delimiter must not appear in the null specification"),
        ({"null": "\n"}, "null representation cannot use newline or carriage return"),
        ({"max_file_size": "1TB"}, "raise part_size"),
        (
            {"max_multi_part_bytes_in_memory": "9MB"},
            "must be at least twice part_size, which is 8MB; it is 9MB",
        ),
        ({"location": "s3://b/x/ || mz_now()"}, "in a SQL expression the texts are in quotes"),
        ({"location": 5}, "location must be a text, not 5"),
        ({"location": ""}, "location is required"),
        ({"location": "s3:///x"}, "location names no bucket: 's3:///x'"),
        ({"partition_by": 5}, "partition_by must be a column's name, or a list of names, not 5"),
        ({"force_quote": True}, "force_quote must be '*' or a list of column names, not True"),
    ],
)
def test_what_is_refused(config: dict[str, Any], problem: str) -> None:
    assert any(problem in found for found in problems(**config))


def test_each_size_that_is_wrong_is_told() -> None:
    told = problems(part_size="6GB", max_file_size="6TB")
    assert [problem.split(",")[0] for problem in told] == [
        "part_size can be 5GB at most",
        "max_file_size can be 5TB at most",
        "max_multi_part_bytes_in_memory must be at least twice part_size",
    ]


def test_tags_as_s3_takes_them() -> None:
    """Letters and digits of all scripts, spaces, and the longest that there may be."""
    tags = {"a b+-=._:/@": "ß日𐊀 ٣ \u00a0", "k" * 128: "v" * 256, "𐊀" * 64: "𐊀" * 128}
    assert parse(object_tags=tags).properties.object_tags == tags


def test_location_is_required() -> None:
    with pytest.raises(ConfigError, match="location is required"):
        parse_options("model.p.m", {}, {"default"})


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"partition_by": ["country", "A b", "é"]}, []),
        ({"single_file": "orders=1%.csv"}, []),
        ({"partition_by": "_day"}, ["partition_by has _day: pyarrow passes over folders"]),
        ({"partition_by": ".day"}, ["partition_by has .day: Spark, Hive and pyarrow pass over"]),
        ({"partition_by": "a=b"}, ["DuckDB shows the column as folders have it, a%3Db"]),
        ({"partition_by": "a%b"}, ["DuckDB shows the column as folders have it, a%25b"]),
        ({"partition_by": ["_a/b"]}, ["without an error, and DuckDB shows the column as"]),
        ({"partition_by": ["_a", "b=c"]}, ["pyarrow passes over", "b%3Dc"]),
        ({"single_file": ".x"}, ["Spark and pyarrow, pass over names that begin with a dot"]),
        ({"single_file": "a:b.csv"}, ["Spark can't read a file whose name has a colon"]),
        ({"single_file": ".a:b"}, ["begin with a dot, and Spark can't read"]),
    ],
)
def test_names_of_which_some_readers_make_nothing_are_told(
    config: dict[str, Any], told: list[str]
) -> None:
    found = list(reader_warnings(parse(**config)))
    assert len(found) == len(told)
    assert all(words in warning for words, warning in zip(told, found, strict=True))
    assert not any("docs/" in warning for warning in found)
