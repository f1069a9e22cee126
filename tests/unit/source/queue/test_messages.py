"""What messages tell, in every wrapping and order; nothing that anybody sends can break it."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.queue.messages import bridged, message, probe, record, wrapped

from dbt.adapters.mzs3.source.queue.messages import (
    UNREADABLE,
    Kind,
    ObjectEvent,
    newest_of_each_key,
    parse_message,
)

keys = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["Records", "s3", "object", "bucket", "key", "name", "eventName", "eventSource",
                 "Type", "Message", "Event", "Bucket", "source", "detail", "detail-type"]
            ) | st.text(max_size=5),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)  # fmt: skip


@given(keys, st.integers(0, 3))
def test_a_key_comes_out_as_it_is_in_s3_however_often_it_is_wrapped(key, times):
    body = message(record(key))
    for _ in range(times):
        body = wrapped(body)
    (event,) = parse_message(body)
    assert (event.kind, event.bucket, event.key) == (Kind.CREATED, "acme-raw", key)


@given(keys)
def test_eventbridge_writes_keys_as_they_are(key):
    (event,) = parse_message(bridged(key))
    assert (event.kind, event.bucket, event.key) == (Kind.CREATED, "acme-raw", key)
    assert event.sequencer == 0x617F08


def test_plus_signs_and_spaces_are_told_apart():
    body = json.dumps({"Records": [record("x")]}).replace('"x"', '"a+b%2Bc%20d%C3%A9"')
    assert parse_message(body)[0].key == "a b+c dé"
    assert parse_message(bridged("a+b c%20"))[0].key == "a+b c%20"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ObjectCreated:Put", Kind.CREATED),
        ("ObjectCreated:Post", Kind.CREATED),
        ("ObjectCreated:Copy", Kind.CREATED),
        ("ObjectCreated:CompleteMultipartUpload", Kind.CREATED),
        ("ObjectCreated:SomethingNew", Kind.CREATED),
        ("s3:ObjectCreated:Put", Kind.CREATED),
        ("ObjectRemoved:Delete", Kind.REMOVED),
        ("ObjectRemoved:DeleteMarkerCreated", Kind.REMOVED),
        ("LifecycleExpiration:Delete", Kind.REMOVED),
        ("ObjectTagging:Put", Kind.OTHER),
        ("ObjectRestore:Completed", Kind.OTHER),
    ],
)
def test_kinds_of_events(name, kind):
    (event,) = parse_message(message(record("a.csv", name)))
    assert (event.kind, event.name) == (kind, name.removeprefix("s3:"))
    assert event.time == "2026-01-02T03:04:05.678Z"


@pytest.mark.parametrize(
    ("detail_type", "kind"),
    [
        ("Object Created", Kind.CREATED),
        ("Object Deleted", Kind.REMOVED),
        ("Object Tags Added", Kind.OTHER),
    ],
)
def test_kinds_of_events_of_eventbridge(detail_type, kind):
    assert parse_message(bridged("a.csv", detail_type))[0].kind is kind


@pytest.mark.parametrize("body", [probe(), wrapped(probe())])
def test_the_test_event_is_known(body):
    assert [(e.kind, e.bucket) for e in parse_message(body)] == [(Kind.TEST, "acme-raw")]


def test_several_records_of_which_one_is_none():
    records = [record("a.csv"), {"eventSource": "aws:ses"}, record("b.csv")]
    found = parse_message(message(*records))
    assert [event.key for event in found] == ["a.csv", "", "b.csv"]
    assert found[1] == UNREADABLE


@pytest.mark.parametrize("source", ["minio:s3", "ceph:s3", "aws:s3"])
@pytest.mark.parametrize("version", ["2.0", "2.3", "9.9"])
def test_other_stores_and_versions_are_understood_as_far_as_they_go(source, version):
    body = message(record("a.csv", eventSource=source, eventVersion=version))
    assert parse_message(body)[0].kind is Kind.CREATED


@pytest.mark.parametrize(
    "body",
    ["", "no json", "[]", "7", "null", '{"Records": 7}', '{"Records": []}', "{}", "[" * 100_000,
     '{"Event": "s3:TestEvent"}', '{"Event": "s3:TestEvent", "source": "aws.s3", "detail": {}}',
     '{"Type": "Notification", "Message": "x"}'],
)  # fmt: skip
def test_what_tells_of_nothing(body):
    assert parse_message(body) == ()


@pytest.mark.parametrize(
    "one",
    [
        7,
        {},
        record("a", eventSource="aws:sqs"),
        record("a", eventName=None),
        record("a", s3=None),
        record("a", s3={"bucket": {"name": "b"}, "object": {"key": "%FF"}}),
        record("a", s3={"bucket": {"name": "b"}, "object": {"key": ""}}),
        record("a", s3={"bucket": {"name": "b"}, "object": {"key": "\ud800"}}),
    ],
)
def test_records_that_are_none(one):
    assert parse_message(message(one)) == (UNREADABLE,)


@given(anything)
def test_whatever_is_sent_is_read_without_an_error(value):
    for body in (json.dumps(value), wrapped(json.dumps(value)), message(value)):
        for event in parse_message(body):
            assert isinstance(event, ObjectEvent)
            event.key.encode()


@given(st.text())
def test_whatever_text_is_sent_is_read_without_an_error(body):
    assert parse_message(body) == () or body.strip().startswith("{")


@pytest.mark.parametrize("sequencer", ["", "xyz", "1_0", "-1", 5, None, "f" * 129])
def test_a_sequencer_that_is_none(sequencer):
    body = message(record("a", sequencer=sequencer if sequencer is not None else None))
    assert parse_message(body)[0].sequencer is None


def event(kind, sequencer, key="a"):
    return ObjectEvent(kind, "acme-raw", key, sequencer=sequencer)


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.booleans(), st.text("0123456789abcdefAB", min_size=1)),
        min_size=1,
        max_size=12,
        unique_by=lambda one: (one[0], int(one[2], 16)),
    ),
    st.randoms(use_true_random=False),
)
def test_the_newest_counts_whatever_the_order_and_however_often(told, rng: random.Random):
    def body(key, created, sequencer):
        name = "ObjectCreated:Put" if created else "ObjectRemoved:Delete"
        return message(record(key, name, sequencer=sequencer))

    delivered = [body(*one) for one in told] + [body(*rng.choice(told)) for _ in range(3)]
    rng.shuffle(delivered)
    found = newest_of_each_key(e for one in delivered for e in parse_message(one))

    width = max(len(sequencer) for *_, sequencer in told)
    for key in {key for key, *_ in told}:
        of_key = [one for one in told if one[0] == key]
        _, created, sequencer = max(of_key, key=lambda one: one[2].lower().rjust(width, "0"))
        assert found[key].sequencer == int(sequencer, 16)
        assert (found[key].kind is Kind.CREATED) is created


def test_a_longer_sequencer_with_zeros_before_it_is_no_newer():
    older, newer = event(Kind.CREATED, int("0009", 16)), event(Kind.REMOVED, int("a", 16))
    assert newest_of_each_key([newer, older])["a"] is newer


@given(st.permutations([(Kind.CREATED, 5), (Kind.REMOVED, 9), (Kind.CREATED, None)]))
def test_without_a_sequencer_a_creation_is_looked_into(told):
    assert newest_of_each_key(event(*one) for one in told)["a"].kind is Kind.CREATED


@pytest.mark.parametrize("key", ["a" * 1025, "é" * 513])
def test_a_key_that_is_longer_than_any_in_s3_is_none(key):
    for body in (message(record(key)), bridged(key)):
        assert parse_message(body) == (UNREADABLE,)
    assert parse_message(bridged("é" * 512))[0].kind is Kind.CREATED
