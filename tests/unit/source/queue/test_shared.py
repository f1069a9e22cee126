"""A queue that others use too: what a run takes of it, what it leaves, and where it ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.queue.messages import message, probe, record
from support.queue.post_office import Post, names, post_office

from dbt.adapters.mzs3.source.queue import inbox as queue_inbox


@pytest.fixture
def post(monkeypatch: pytest.MonkeyPatch) -> Iterator[Post]:
    monkeypatch.setattr(queue_inbox, "WAIT_S", 0)
    with post_office() as made:
        yield made


def test_what_is_not_this_sources_is_left_for_others_with_a_count(post: Post) -> None:
    post.put("a.csv")
    post.put("b.txt")
    post.send(
        message(record("orders/a.csv")),
        message(record("orders/a.csv", bucket="other")),
        message(record("orders2/a.csv")),
        message(record("orders/b.txt")),
        message(record("orders/a.csv", "ObjectTagging:Put")),
        message(record("orders/a.csv"), record("elsewhere/a.csv")),
        probe("other"),
        "a secret-body",
        "{}",
    )
    with post.open(pattern="*.csv") as inbox:
        inbox.receive()
        assert names(inbox.present_objects) == ["a.csv"]
        assert post.left == (8, 1)  # others may have them at once
        inbox.acknowledge()
    assert post.left == (8, 0)
    assert post.warned == [
        "lake.orders: messages of the queue events were left in it, as they are not this "
        "source's: 1 of events other than creation and removal, 2 of objects outside the "
        "location, 1 of objects that the pattern leaves out, 2 of other buckets, 2 that are no "
        "S3 events (8 in all, beside 1 of its own). They come again with every run: give the "
        "source a queue of its own"
    ]


def test_a_run_takes_a_bounded_number(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_inbox, "MAX_MESSAGES", 20)
    for number in range(25):
        post.put(f"{number}.csv")
        post.send(message(record(f"orders/{number}.csv")))
    with post.open() as inbox:
        inbox.receive()
        inbox.acknowledge()
        assert len(inbox.present_objects) == 20
    assert post.left == (5, 0)
    assert post.warned == [
        "lake.orders: this run takes 20 of its own messages from the queue events, beside 0 that "
        "are others' or came again, and there may be more; run again for the rest"
    ]


def test_messages_of_others_do_not_count_towards_those_of_a_run(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A burst for another source on the same queue keeps nothing from this one."""
    monkeypatch.setattr(queue_inbox, "MAX_MESSAGES", 20)
    post.send(*(message(record(f"others/{number}.csv")) for number in range(50)))
    for number in range(25):
        post.put(f"{number}.csv")
        post.send(message(record(f"orders/{number}.csv")))
    with post.open() as inbox:
        inbox.receive()
        assert len(inbox.present_objects) == 20
        assert post.left == (55, 20)  # what others have on the queue is theirs again already
        inbox.acknowledge()
    assert post.left == (55, 0)
    assert post.warned == [
        "lake.orders: this run takes 20 of its own messages from the queue events, beside 50 that "
        "are others' or came again, and there may be more; run again for the rest",
        "lake.orders: messages of the queue events were left in it, as they are not this "
        "source's: 50 of objects outside the location (50 in all, beside 20 of its own). They "
        "come again with every run: give the source a queue of its own",
    ]


def test_a_run_ends_among_messages_of_others(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_inbox, "MAX_OTHERS", 30)
    post.put("first.csv")
    post.send(message(record("orders/first.csv")))
    post.send(*(message(record(f"others/{number}.csv")) for number in range(50)))
    post.send(message(record("orders/last.csv")))
    with post.open() as inbox:
        inbox.receive()
        assert names(inbox.present_objects) == ["first.csv"]
        inbox.acknowledge()
    assert post.left == (51, 0)
    # One cause, told once. To run again may not help, so that is no advice.
    assert post.warned == [
        "lake.orders: messages of the queue events were left in it, as they are not this "
        "source's: 39 of objects outside the location (39 in all, beside 1 of its own). This run "
        "received no more after 39 messages that are others' or came again; its own may be behind "
        "those. They come again with every run: give the source a queue of its own"
    ]


def test_messages_of_its_own_that_come_again_count_where_they_end_a_run(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_inbox, "MAX_OTHERS", 5)
    post.put("a.csv")
    post.send(message(record("orders/a.csv")))
    with post.open() as inbox:
        receive = inbox._queue.receive
        inbox._queue.receive = lambda **_: receive(wait_s=0, visibility_s=0)
        inbox.receive()
        inbox.acknowledge()
    assert post.warned == [
        "lake.orders: messages of the queue events came again. This run received no more after 5 "
        "messages that are others' or came again; its own may be behind those. Run again for the "
        "rest"
    ]


def test_a_message_that_came_again_is_deleted_by_its_last_receipt(post: Post) -> None:
    post.put("a.csv")
    body = message(record("orders/a.csv"))
    received = [[("id", "first", body)], [("id", "second", body)], []]
    deleted: list[str] = []
    with post.open() as inbox:
        inbox._queue.receive = lambda **_: received.pop(0)
        inbox._queue.delete = lambda handles: deleted.extend(handles) or []
        inbox.receive()
        inbox.acknowledge()
    assert deleted == ["second"]


def test_a_message_that_comes_again_and_again_ends_a_run_too(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where nothing may be hidden for longer, and receiving takes longer than it was."""
    monkeypatch.setattr(queue_inbox, "MAX_OTHERS", 5)
    post.put("a.csv")
    post.send(message(record("orders/a.csv")), message(record("others/a.csv")))
    with post.open() as inbox:
        receive = inbox._queue.receive
        inbox._queue.receive = lambda **_: receive(wait_s=0, visibility_s=0)
        inbox.receive()
        assert names(inbox.present_objects) == ["a.csv"]
        inbox.acknowledge()
    assert post.left == (1, 0)
    assert "no more after 5 messages that are others' or came again" in post.warned[0]
    assert post.warned[0].endswith("Run again for the rest")


def test_objects_that_messages_of_others_name_do_not_count_either(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message of several records, of which one is not the source's, comes with every run."""
    monkeypatch.setattr(queue_inbox, "MAX_MESSAGES", 10)
    for number in range(10):
        post.send(message(record(f"orders/{number}.csv"), record("others/a.csv")))
    post.put("a.csv")
    post.send(message(record("orders/a.csv")))
    with post.open() as inbox:
        inbox.receive()
        assert names(inbox.present_objects) == ["a.csv"]
        assert len(inbox.events_without_object) == 10
