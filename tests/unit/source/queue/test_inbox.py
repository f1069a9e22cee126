"""What a run makes of a queue: what it takes, what it leaves alone, what it gives back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from support.queue.messages import bridged, message, probe, record, wrapped
from support.queue.post_office import CONNECTION, Post, names, post_office
from support.source.fields import parse

from dbt.adapters.mzs3.errors import S3Error, SourceError
from dbt.adapters.mzs3.source.pinning import purify_now
from dbt.adapters.mzs3.source.queue import inbox as queue_inbox
from dbt.adapters.mzs3.source.queue.inbox import Inbox, open_inbox
from dbt.adapters.mzs3.source.queue.messages import Kind
from dbt.adapters.mzs3.source.run import SourceRun
from dbt.adapters.mzs3.store import s3 as store_s3
from dbt.adapters.mzs3.store.connection import AwsConnection


@pytest.fixture
def post(monkeypatch: pytest.MonkeyPatch) -> Iterator[Post]:
    monkeypatch.setattr(queue_inbox, "WAIT_S", 0)
    with post_office() as made:
        yield made


def test_a_source_without_a_queue_has_no_inbox() -> None:
    spark: Any = None
    with open_inbox(SourceRun(spark, parse(), CONNECTION)) as inbox:
        assert inbox is None


def test_objects_are_looked_up_and_messages_deleted_when_the_run_says_so(post: Post) -> None:
    for number in range(25):
        post.put(f"a+b {number}.csv", b"x" * number)
        post.send(message(record(f"orders/a+b {number}.csv")))
    with post.open() as inbox:
        assert post.left == (25, 0)  # nothing is received before it is needed
        inbox.receive()
        inbox.receive()
        assert post.left == (0, 25)
        found = {one.key: one for one in inbox.present_objects}
        assert set(found) == {f"orders/a+b {n}.csv" for n in range(25)}
        head = post.s3.head_object(Bucket="acme-raw", Key="orders/a+b 7.csv")
        one = found["orders/a+b 7.csv"]
        assert (one.size, one.etag) == (7, head["ETag"].strip('"'))
        assert one.modified == head["LastModified"]
        inbox.acknowledge()
        assert post.left == (0, 0)
    assert post.warned == []


def test_what_no_message_told_of_can_be_looked_at_too(post: Post) -> None:
    for name in ("a.csv", "b.csv"):
        post.put(name)
    post.send(message(record("orders/a.csv")))
    with post.open() as inbox:
        inbox.receive()
        inbox.add(["orders/a.csv", "orders/b.csv", "orders/gone.csv"])
        assert names(inbox.present_objects) == ["a.csv", "b.csv"]
        assert names(inbox.events_without_object) == ["gone.csv"]
        inbox.acknowledge()
    assert post.left == (0, 0)


def test_what_is_not_acknowledged_goes_back_at_once(post: Post) -> None:
    post.put("a.csv")
    post.send(message(record("orders/a.csv")))
    with pytest.raises(ZeroDivisionError), post.open() as inbox:
        inbox.receive()
        assert post.left == (0, 1)
        raise ZeroDivisionError
    assert post.left == (1, 0)
    with post.open() as inbox:
        inbox.receive()
        assert names(inbox.present_objects) == ["a.csv"]


def test_doubled_reordered_and_wrapped_events_are_one_object(post: Post) -> None:
    post.put("a.csv")
    post.send(
        message(record("orders/a.csv", sequencer="0b")),
        wrapped(message(record("orders/a.csv", sequencer="0a"))),
        message(record("orders/a.csv", "ObjectRemoved:Delete", sequencer="0A")),
        bridged("orders/a.csv", sequencer="9"),
    )
    with post.open() as inbox:
        inbox.receive()
        assert (names(inbox.present_objects), inbox.events_without_object) == (["a.csv"], [])


def test_removed_objects_and_those_that_are_gone_are_told_apart(post: Post) -> None:
    post.send(
        message(record("orders/gone.csv", sequencer="1")),
        message(record("orders/removed.csv", "ObjectRemoved:Delete", sequencer="2")),
        message(record("orders/removed.csv", sequencer="1")),
        probe(),
    )
    with post.open() as inbox:
        inbox.receive()
        assert inbox.present_objects == []
        assert names(inbox.events_without_object) == ["gone.csv", "removed.csv"]
        kinds = {event.key: event.kind for event in inbox.events_without_object}
        assert kinds == {"orders/gone.csv": Kind.CREATED, "orders/removed.csv": Kind.REMOVED}
        inbox.acknowledge()
    assert post.left == (0, 0)


def why_no_header(post: Post) -> str:
    """Why a source that declares no columns has none to learn; its messages stay."""
    before, run = post.left, post.run()
    with pytest.raises(SourceError) as raised, open_inbox(run) as inbox:
        purify_now(run, inbox)
    assert post.left == before
    return str(raised.value)


def test_a_queue_with_nothing_but_the_test_event_says_so(post: Post) -> None:
    post.send(probe(), wrapped(probe()))
    assert why_no_header(post) == (
        "lake.orders: the queue events holds nothing but S3's test event, which announces no "
        "object, so there is none to learn the columns from. Declare the names as "
        "`header: [name, ...]`; or run again once an object was announced. Messages that a "
        "killed run had received come back within 300 s"
    )


@pytest.mark.parametrize(
    "other", [message(record("orders/gone.csv")), probe("other"), "{}"], ids=["gone", "other", "x"]
)
def test_a_queue_with_more_than_the_test_event_does_not(post: Post, other: str) -> None:
    post.send(probe(), other)
    assert "the queue events names no object that has a header" in why_no_header(post)


def test_markers_of_folders_and_records_of_exports_are_no_objects(post: Post) -> None:
    for name in ("day/", "_manifest.json", "day/_committing.json"):
        post.put(name, b"")
        post.send(message(record(f"orders/{name}")))
    with post.open() as inbox:
        inbox.receive()
        assert (inbox.present_objects, inbox.events_without_object) == ([], [])
        inbox.acknowledge()
    assert (post.left, post.warned) == ((0, 0), [])


def refuse(inbox: Inbox, action: str) -> None:
    def answer(model: Any, **_: Any) -> None:
        raise ClientError(
            {"Error": {"Code": "AccessDenied", "Message": "No."}}, operation_name=model.name
        )

    client: Any = inbox._queue._client
    client.meta.events.register(f"before-call.sqs.{action}", answer)


def test_messages_that_can_not_be_deleted_are_a_warning(post: Post) -> None:
    post.put("a.csv")
    post.send(message(record("orders/a.csv")))
    with post.open() as inbox:
        inbox.receive()
        refuse(inbox, "DeleteMessageBatch")
        inbox.acknowledge()
    assert post.warned == [
        "lake.orders: 1 message of the queue events could not be deleted (deleting messages of "
        "the queue events failed: AccessDenied: No. (needs sqs:DeleteMessage)). They come again, "
        "and nothing is ingested twice"
    ]


def test_messages_that_can_not_be_given_back_are_a_warning(post: Post) -> None:
    post.send(message(record("orders/gone.csv")))
    with post.open() as inbox:
        inbox.receive()
        refuse(inbox, "ChangeMessageVisibilityBatch")
    assert post.warned == [
        "lake.orders: 1 message could not be given back to the queue events at once (changing "
        "the visibility of messages of the queue events failed: AccessDenied: No. (needs "
        "sqs:ChangeMessageVisibility)). They come back by themselves within 300 s"
    ]


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], threading.Event]:
    """Messages are held anew every 10 ms; an event when it happened, or was warned of, twice."""
    monkeypatch.setattr(queue_inbox, "VISIBILITY_S", 0.03)

    def twice(seen: list[str]) -> threading.Event:
        happened = threading.Event()

        class Heard(list[str]):
            def append(self, text: str) -> None:
                seen.append(text)
                if len(seen) == 2:
                    happened.set()

        happened.heard = Heard()  # type: ignore[attr-defined]
        return happened

    return twice


def test_messages_are_held_while_the_run_works(post: Post, fast: Any) -> None:
    post.put("a.csv")
    post.send(message(record("orders/a.csv")))
    happened = fast([])
    with post.open() as inbox:
        hide = inbox._queue.hide
        hidden: list[tuple[int, float]] = []

        def watched(handles: Any, seconds: Any) -> Any:
            hidden.append((len(handles), seconds))
            happened.heard.append("hidden")
            return hide(handles, 300)

        inbox._queue.hide = watched
        # The visibility that moto is asked for must be a whole number.
        receive = inbox._queue.receive
        inbox._queue.receive = lambda **_: receive(wait_s=0, visibility_s=300)
        inbox.receive()
        assert happened.wait(10)
        assert hidden[:2] == [(1, 0.03), (1, 0.03)]
        inbox.acknowledge()
        seen = len(hidden)
        assert not inbox._thread.is_alive()
    assert len(hidden) == seen  # nothing is left to give back


def test_messages_that_can_not_be_held_are_one_warning(post: Post, fast: Any) -> None:
    post.put("a.csv")
    post.send(message(record("orders/a.csv")))
    happened = fast([])
    with post.open() as inbox:
        receive = inbox._queue.receive
        inbox._queue.receive = lambda **_: receive(wait_s=0, visibility_s=300)

        def failing(handles: Any, seconds: Any) -> Any:
            if seconds:
                happened.heard.append("failed")
                raise S3Error("No.")
            return module_undone

        module_undone = inbox._queue.hide([], 0)
        inbox._queue.hide = failing
        inbox.receive()
        assert happened.wait(10)
    assert post.warned == [
        "lake.orders: 1 message of the queue events could not be kept from others while this "
        "run works (No.). Another run may get them too; nothing is ingested twice"
    ]


def test_a_cancelled_run_gives_back_what_it_has(post: Post) -> None:
    post.put("a.csv")
    post.send(message(record("orders/a.csv")))
    with pytest.raises(SourceError, match="cancelled"), post.open() as inbox:
        receive = inbox._queue.receive

        def cancelling(**how: Any) -> Any:
            post.cancelled.set()
            return receive(**how)

        inbox._queue.receive = cancelling
        inbox.receive()
    assert post.left == (1, 0)


def test_a_missing_bucket_is_an_error_and_costs_no_message(post: Post) -> None:
    post.send(message(record("orders/a.csv")))
    post.s3.delete_bucket(Bucket="acme-raw")
    with pytest.raises(S3Error) as raised, post.open() as inbox:
        inbox.receive()
    text = str(raised.value)
    assert text.startswith("looking for s3://acme-raw/orders/a.csv failed: NoSuchBucket: ")
    assert text.endswith(
        "The messages that announced its objects stay in the queue; check the bucket, and the "
        "endpoint of the AWS connection"
    )
    assert post.left == (1, 0)


def test_an_object_that_can_not_be_looked_at_names_the_permissions(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = store_s3.s3_client

    def refusing(connection: AwsConnection) -> Any:
        def answer(model: Any, **_: Any) -> None:
            raise ClientError({"Error": {"Code": "403", "Message": "Forbidden"}}, model.name)

        client: Any = make(connection)
        client.meta.events.register("before-call.s3.HeadObject", answer)
        return client

    monkeypatch.setattr(store_s3, "s3_client", refusing)
    post.send(message(record("orders/a.csv")))
    with pytest.raises(S3Error) as raised, post.open() as inbox:
        inbox.receive()
    assert str(raised.value) == (
        "looking for s3://acme-raw/orders/a.csv failed: 403: Forbidden (needs s3:GetObject). If "
        "the object is gone, this needs s3:ListBucket too: without it S3 does not tell what is "
        "missing from what is denied"
    )
    assert post.left == (1, 0)


def test_a_key_that_no_object_can_have_is_left_in_the_queue_and_stops_nothing(post: Post) -> None:
    post.put("a.csv")
    post.send(message(record("orders/a.csv")), message(record(f"orders/{'x' * 1020}.csv")))
    with post.open() as inbox:
        inbox.receive()
        assert (names(inbox.present_objects), inbox.events_without_object) == (["a.csv"], [])
        inbox.acknowledge()
    assert post.left == (1, 0)
    assert "1 that are no S3 events" in post.warned[0]


def test_a_removal_that_comes_late_does_not_hide_an_object_that_is_there(post: Post) -> None:
    post.put("a.csv")
    post.send(message(record("orders/a.csv", "ObjectRemoved:Delete", sequencer="2")))
    with post.open() as inbox:
        inbox.receive()
        assert (names(inbox.present_objects), inbox.events_without_object) == (["a.csv"], [])
