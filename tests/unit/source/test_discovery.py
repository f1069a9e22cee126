"""Where a source may learn of its objects, what may become of them, and every way to be wrong."""

import pytest
from support.source.fields import parse, purify_names

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.source.discovery import AfterAction, AfterCommit, Discovery, queue_name
from dbt.adapters.mzs3.source.purify import contradictions
from dbt.adapters.mzs3.store.location import S3Location

URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders-events"
WAYS = "bucket_scan, or sqs_notifications with a queue's name or URL"
ACTIONS = "keep, tag, {tag: {name: value}}, {move: s3://bucket/prefix/}, delete"


def problems(**external):
    with pytest.raises(ConfigError) as raised:
        parse(external)
    return list(raised.value.problems)


def test_by_default_a_source_lists_and_keeps():
    assert parse().discovery == Discovery(True, None)
    assert parse().after_commit == AfterCommit(AfterAction.KEEP)


@pytest.mark.parametrize(
    ("discover", "expected"),
    [
        (["bucket_scan"], Discovery()),
        ("bucket_scan", Discovery()),
        ([{"sqs_notifications": "q"}], Discovery(False, "q")),
        ({"sqs_notifications": "q-fifo"}, Discovery(False, "q-fifo")),
        ([{"sqs_notifications": URL}, "bucket_scan"], Discovery(True, URL)),
    ],
)
def test_listing_a_queue_or_both(discover, expected):
    assert parse(discover=discover).discovery == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("keep", AfterCommit()),
        ("tag", AfterCommit(AfterAction.TAG, (("mzs3-ingested", "{epoch}"),))),
        ({"tag": {"state": "in", "by": 7}},
         AfterCommit(AfterAction.TAG, (("state", "in"), ("by", "7")))),
        ({"tag": {"run": "e{epoch}"}}, AfterCommit(AfterAction.TAG, (("run", "e{epoch}"),))),
        ({"move": "s3://attic/orders"},
         AfterCommit(AfterAction.MOVE, target=S3Location("attic", "orders/"))),
        ({"move": "s3://acme-raw/done/"},
         AfterCommit(AfterAction.MOVE, target=S3Location("acme-raw", "done/"))),
        ("delete", AfterCommit(AfterAction.DELETE)),
    ],
)  # fmt: skip
def test_what_comes_after_the_commit(value, expected):
    assert parse(after_commit=value).after_commit == expected


@pytest.mark.parametrize(
    ("external", "says"),
    [
        ({"discover": []},
         f"external.discover must be a list of {WAYS}; without it, [bucket_scan] holds"),
        ({"discover": 7},
         f"external.discover must be a list of {WAYS}; without it, [bucket_scan] holds"),
        ({"discover": ["ftp"]}, f"external.discover must be {WAYS}, not 'ftp'"),
        ({"discover": [{"sqs": "https://me:secret@x/q"}]},
         f"external.discover must be {WAYS}, not a mapping of 'sqs'"),
        ({"discover": ["sqs_notifications"]},
         "external.discover: sqs_notifications needs a queue: {sqs_notifications: its name or "
         "URL}"),
        ({"discover": [{"sqs_notifications": "a"}, {"sqs_notifications": "b"}]},
         "external.discover names 2 queues; a source has one: have the buckets' notifications "
         "sent to the same queue"),
        ({"discover": [{"sqs_notifications": None}]},
         "external.discover: sqs_notifications must be the name or the URL of a queue, as a text"),
        ({"discover": [{"sqs_notifications": "arn:aws:sqs:us-east-1:1:q"}]},
         "external.discover: sqs_notifications is an ARN; give the queue's name, or its URL if it "
         "is another account's"),
        ({"discover": [{"sqs_notifications": "a queue"}]},
         "external.discover: sqs_notifications is no name of a queue: those are up to 80 letters, "
         "digits, - and _"),
        *(({"discover": [{"sqs_notifications": queue}]},
           "external.discover: sqs_notifications is a FIFO queue, where a message that a run "
           "holds, or leaves to others, keeps back all behind it; have the events sent to a "
           "standard queue: to a source their order is no matter")
          for queue in ("q.fifo", f"{URL}.fifo")),
        ({"discover": [{"sqs_notifications": "ftp://host/q"}]},
         "external.discover: sqs_notifications is no URL of a queue, such as "
         "https://sqs.us-east-1.amazonaws.com/123456789012/q"),
        ({"discover": [{"sqs_notifications": "https://host:x/q"}]},
         "external.discover: sqs_notifications is no URL of a queue, such as "
         "https://sqs.us-east-1.amazonaws.com/123456789012/q"),
        ({"discover": [{"sqs_notifications": "https://AKIA:secret@host/1/q"}]},
         "external.discover: sqs_notifications must be a URL without a user, a password or "
         "parameters: keys belong under aws_connections in the profile"),
        ({"after_commit": "archive"},
         f"external.after_commit must be one of {ACTIONS}, not 'archive'"),
        ({"after_commit": True}, f"external.after_commit must be one of {ACTIONS}, not True"),
        ({"after_commit": "move"},
         "external.after_commit: move needs a place: {move: s3://bucket/prefix/}"),
        ({"after_commit": {"move": "attic"}},
         "external.after_commit: move must start with s3://, not 'attic'"),
        ({"after_commit": {"move": "s3://acme-raw/orders/done/"}},
         "external.after_commit: move to s3://acme-raw/orders/done/ overlaps the location "
         "s3://acme-raw/orders/: objects that were moved could be ingested again; name a place "
         "beside it, or another bucket"),
        ({"after_commit": {"move": "s3://acme-raw/"}},
         "external.after_commit: move to s3://acme-raw/ overlaps the location "
         "s3://acme-raw/orders/: objects that were moved could be ingested again; name a place "
         "beside it, or another bucket"),
        ({"after_commit": {"tag": "done"}},
         "external.after_commit: tag must be a mapping of names to values, not 'done'"),
        ({"after_commit": {"tag": {f"t{n}": "" for n in range(11)}}},
         "external.after_commit: tag has 11 tags; S3 takes 10 for an object"),
        ({"after_commit": {"tag": {"a": "b;c"}}},
         "external.after_commit: tag 'a': 'b;c' is no tag for S3: up to 128 characters for the "
         "name, 256 for the value, of letters, digits, spaces and + - = . _ : / @"),
        ({"after_commit": {"tag": {"a": "x" * 249 + "{epoch}"}}},
         f"external.after_commit: tag 'a': '{'x' * 249}{{epoch}}' is no tag for S3: up to 128 "
         "characters for the name, 256 for the value, of letters, digits, spaces and "
         "+ - = . _ : / @"),
        ({"after_commit": {"move": "s3://attic/../x"}},
         "external.after_commit: move has a folder '..', which readers take for the way to "
         "another one: 's3://attic/../x'"),
        ({"location": "s3://b/x\n"},
         "external.location ends in a newline, as a block of YAML does: 's3://b/x\\n'; write it "
         "on the line of its key, or begin the block with |- or >-"),
        ({"location": "s3://KEY:hush@b/x"},
         "external.location has something before the name of its bucket that may be a key, and is "
         "not shown; keys belong under aws_connections in the profile"),
        ({"delimiter": "\0"}, "external: delimiter cannot hold a NUL byte"),
    ],
)  # fmt: skip
def test_one_problem(external, says):
    assert problems(**external) == [says]


@pytest.mark.parametrize(
    "discover",
    [
        "https://AKIA:s3cr3t@sqs.host/1/q",
        ["https://AKIA:s3cr3t@sqs.host/1/q"],
        [["https://AKIA:s3cr3t@sqs.host/1/q"]],
        [{"https://AKIA:s3cr3t@sqs.host/1/q": None}],
        [{"sqs": "https://AKIA:s3cr3t@sqs.host/1/q"}],
        [{"sqs_notifications": "AKIA:s3cr3t@sqs/1/q"}],
        [{"sqs_notifications": "https://AKIA:s3cr3t@sqs.host/1/q"}],
        [{"sqs_notifications": ["https://AKIA:s3cr3t@sqs.host/1/q"]}],
    ],
)
def test_what_may_hold_a_password_is_not_repeated(discover):
    (problem,) = problems(discover=discover)
    assert problem.startswith("external.discover")
    assert "s3cr3t" not in problem


def test_all_problems_are_told_at_once():
    assert len(problems(discover=["ftp"], after_commit="x", pattern="[")) == 3


def test_all_problems_of_one_value_are_told_at_once():
    assert len(problems(discover=["ftp", {"sqs_notifications": "a b"}, "sqs_notifications"])) == 3
    assert len(problems(after_commit={"tag": {"a": "b;c", "aws:x": "y"}})) == 2


def test_the_name_of_a_queue():
    assert queue_name("orders-events") == queue_name(URL) == queue_name(f"{URL}/")


@pytest.mark.parametrize(
    "changed",
    [
        {"after_commit": "delete"},
        {"after_commit": {"tag": {"done": "{epoch}"}}},
        {"after_commit": {"move": "s3://acme-done/orders/"}},
        {"discover": [{"sqs_notifications": URL}]},
    ],
)
def test_what_became_of_objects_is_no_part_of_what_is_pinned(changed):
    kept, other = parse(), parse(changed)
    assert (other.discovery, other.after_commit) != (kept.discovery, kept.after_commit)
    pinned = purify_names(kept, ["id"])
    assert purify_names(other, ["id"]).to_json() == pinned.to_json()
    assert contradictions(pinned, other) == []
