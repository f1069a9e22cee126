"""Locations: a bucket and a prefix that never runs into its sibling."""

from typing import Any

import pytest

from dbt.adapters.mzs3.store.client import s3_client
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import (
    S3Location,
    named_target,
    option_problems,
    parse_location,
    readable_location,
)

ACCESS_POINT = "arn:aws:s3:us-east-1:123456789012:accesspoint"


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("s3://b/orders", S3Location("b", "orders/")),
        ("s3://b/orders/", S3Location("b", "orders/")),
        ("s3://b/a/b c/é", S3Location("b", "a/b c/é/")),
        ("s3://b", S3Location("b", "")),
        ("s3://b/", S3Location("b", "")),
        (f"s3://{ACCESS_POINT}/lake/x/y", S3Location(f"{ACCESS_POINT}:lake", "x/y/")),
        (f"s3://{ACCESS_POINT}:lake/x", S3Location(f"{ACCESS_POINT}:lake", "x/")),
        (f"s3://{ACCESS_POINT}/lake", S3Location(f"{ACCESS_POINT}:lake", "")),
    ],
)
def test_a_prefix_ends_in_one_slash(text: str, location: S3Location) -> None:
    assert parse_location(text) == location


def test_keys_and_uris_are_below_it() -> None:
    location = S3Location("b", "orders/")
    assert location.uri == "s3://b/orders/"
    assert location.key("part-0000-0001.csv") == "orders/part-0000-0001.csv"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("s3://b/a/./c", "has a folder '.', which readers take for the way to another one"),
        ("s3://b/../c/", "has a folder '..', which"),
        ("s3://b/a/..", "has a folder '..', which"),
        ("s3://b/x\n", "ends in a newline, as a block of YAML does: 's3://b/x\\\\n'; write it on"),
        ("s3://b\n", "ends in a newline, as a block"),
        ("s3://b/x\r\n", "ends in a newline, as a block"),
        ("s3://b/x\ny", "has a control character in it, such as a newline or a tab: "),
        ("s3://b/x\t\n", "ends in a newline"),
        ("s3://b/x\x00", "has a control character in it"),
        ("s3://b/x\x7f", "has a control character in it"),
        ("s3://b/x\x85y", "has a control character in it"),
    ],
)
def test_folders_that_no_reader_finds(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_location(text)
    assert option_problems(text) == option_problems(f"'{text}'") != []
    assert option_problems(f"'{text}' || mz_now()") != [] or text.endswith("..")


@pytest.mark.parametrize(
    "text",
    [
        *("s3://b/...", "s3://b/.a/_b", "s3://b/a ", "s3://b/ a/b", "s3://b/a:b/c=d"),
        "s3://b/é#%20",
    ],
)
def test_folders_that_look_odd_and_that_readers_find(text: str) -> None:
    assert parse_location(text).uri == f"{text}/"
    assert option_problems(text) == option_problems(f"'{text}'") == []


@pytest.mark.parametrize(
    "text", ["s3://b/logs/./2024", "s3://b/..", "s3://b/a\tb", "s3://b/a\x7f"]
)
def test_what_others_have_written_is_read(text: str) -> None:
    """S3 has such keys, and our own reader asks for them as they are."""
    assert readable_location(text).uri == f"{text}/"
    found = named_target("verify_copy", {"default": AwsConnection()}, "default", text)
    assert found[1] == readable_location(text)


def test_a_newline_at_the_end_is_of_the_block_of_yaml_wherever_it_is() -> None:
    with pytest.raises(ValueError, match=r"ends in a newline, as a block of YAML does"):
        readable_location("s3://b/x\n")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, "location is required"),
        ("", "location is required"),
        ("s3://b/x/ || mz_now()", "in a SQL expression the texts are in quotes of their own"),
        ("'gs://b/' || mz_now()", "location must start with s3://, not 'gs://b/0'"),
        ("'s3://' || mz_now() || '/../x'", "location has a folder '..'"),
    ],
)
def test_what_a_model_declares_is_told_without_spark(given: object, says: str) -> None:
    [problem] = option_problems(given)
    assert says in problem


@pytest.mark.parametrize("given", [5, "concat('gs://', x)", "mz_now() || 's3://b/'"])
def test_what_only_spark_can_tell(given: object) -> None:
    assert option_problems(given) == []


@pytest.mark.parametrize("text", ["", "b/orders", "s3a://b/x", "s3://", "s3:///x", "s3://b//x"])
def test_what_is_no_location(text: str) -> None:
    with pytest.raises(ValueError, match=r"must start with s3://|no bucket|empty folder name"):
        parse_location(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("s3://lake--use1-az4--x-s3/x", "a directory bucket of S3 Express, lake--use1-az4--x-s3,"),
        ("s3://b:9000/x@y", "names the bucket 'b:9000', and no bucket has such a name"),
        ("s3://my bucket/x", "names the bucket 'my bucket', and no bucket has such a name"),
        (
            "s3://arn:aws:s3-outposts:us-east-1:123456789012:outpost/op-1/accesspoint/lake/x",
            "is the ARN of no access point of S3; use the name of a bucket, or the alias",
        ),
    ],
)
def test_buckets_that_are_none_for_it_are_told_by_their_names(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_location(text)


def test_s3_is_asked_through_the_access_point() -> None:
    location = parse_location(f"s3://{ACCESS_POINT}/lake/x")
    client = s3_client(AwsConnection(access_key_id="a", secret_access_key="b"))

    def stop(request: Any, **_: Any) -> None:
        raise RuntimeError(request.url)

    client.meta.events.register("before-send.s3", stop)
    asked = r"https://lake-123456789012\.s3-accesspoint\.us-east-1\.amazonaws\.com/x/y"
    with pytest.raises(RuntimeError, match=asked):
        client.delete_object(Bucket=location.bucket, Key=location.key("y"))


@pytest.mark.parametrize(
    "text",
    [
        *("s3://AKIA:hush@b/x", "s3a://AKIA:hush@b/x", "s3://AKIA:hu/hush@b/x", "s3://hush@b/x\n"),
        *("s3://AKIA:hush@b/x || mz_now()", "s3n://hush@b", "s3://AKIA:hu//hush@b/../x"),
    ],
)
def test_a_key_in_a_location_is_refused_and_not_repeated(text: str) -> None:
    [problem] = option_problems(text)
    assert "that may be a key, and is not shown" in problem
    assert "hush" not in problem


@pytest.mark.parametrize("text", ["s3://b/a@b", "s3://b/a:b@c", f"s3://{ACCESS_POINT}/lake/x@y"])
def test_an_at_sign_in_a_folder_is_no_key(text: str) -> None:
    assert option_problems(text) == []
