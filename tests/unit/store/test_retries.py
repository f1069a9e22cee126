"""A request that can be made again is; when it has failed for good the error says how often."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import botocore.endpoint
import pytest
from support.s3.answering import ERROR, RESET, Answer, Answering, Asked

from dbt.adapters.mzs3.store import client as client_module
from dbt.adapters.mzs3.store.boto_errors import as_store_errors
from dbt.adapters.mzs3.store.client import s3_client
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.failures import StoreError, UnreachableError, describe
from dbt.adapters.mzs3.store.s3 import S3Store

SLOW_DOWN = (503, ERROR.format("SlowDown", "Please reduce your request rate."))
INTERNAL = (500, ERROR.format("InternalError", "We had a problem."))
DENIED = (403, ERROR.format("AccessDenied", "No."))
FINE = (200, "<ListBucketResult/>")
Serve = Callable[[Callable[[Asked], Answer]], Answering]


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that clients would have waited; here they don't."""
    seconds: list[float] = []

    class Time:
        @staticmethod
        def sleep(delay: float) -> None:
            seconds.append(delay)

    monkeypatch.setattr(botocore.endpoint, "time", Time)
    return seconds


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[Answering] = []

    def start(answer: Callable[[Asked], Answer]) -> Answering:
        servers.append(Answering(answer).__enter__())
        return servers[-1]

    yield start
    for server in servers:
        server.__exit__()


def client_of(endpoint: str, **changes: Any) -> Any:
    connection = AwsConnection(
        endpoint=endpoint,
        region="us-east-1",
        addressing_style="path",
        access_key_id="AKIA",
        secret_access_key="hush",
    )
    return s3_client(connection, **changes)


def ask(client: Any) -> None:
    with as_store_errors():
        client.list_objects_v2(Bucket="b", Prefix="x/")


@pytest.mark.parametrize("fault", [SLOW_DOWN, INTERNAL, RESET])
def test_nine_failures_in_a_row_are_outlasted(
    serve: Serve, waited: list[float], fault: Answer
) -> None:
    answers = itertools.chain([fault] * 9, [FINE])
    server = serve(lambda _: next(answers))
    ask(client_of(server.endpoint))
    assert len(server.asked) == 10
    assert len(waited) == 9
    assert len(set(waited)) > 1  # not in step with all other clients
    assert max(waited) <= 20


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (
            SLOW_DOWN,
            "listing s3://b/x/ failed: SlowDown: Please reduce your request rate; gave up after "
            "10 attempts. The store asks for fewer requests: run fewer tasks at a time, or run "
            "again later when less else uses the bucket",
        ),
        (
            INTERNAL,
            "listing s3://b/x/ failed: InternalError: We had a problem; gave up after 10 attempts",
        ),
    ],
)
def test_the_end_of_patience_is_said(
    serve: Serve, waited: list[float], fault: Answer, says: str
) -> None:
    server = serve(lambda _: fault)
    with pytest.raises(StoreError) as failure:
        ask(client_of(server.endpoint))
    assert describe(failure.value, "listing s3://b/x/", "s3:ListBucket") == says
    assert len(server.asked) == 10


def test_a_connection_that_is_reset_every_time_is_said_so(
    serve: Serve, waited: list[float]
) -> None:
    server = serve(lambda _: RESET)
    with pytest.raises(StoreError) as failure:
        ask(client_of(server.endpoint))
    assert describe(failure.value, "listing s3://b/x/").endswith("; gave up after 10 attempts")
    assert len(server.asked) == 10


def test_an_answer_that_does_not_come_is_asked_for_again(
    serve: Serve, waited: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "READ_TIMEOUT_S", 0.5)
    over = threading.Event()
    numbers = itertools.count()

    def be_silent_at_first(_: Asked) -> Answer:
        if next(numbers) == 0:
            over.wait()
        return FINE

    server = serve(be_silent_at_first)
    ask(client_of(server.endpoint))
    over.set()
    assert len(server.asked) == 2


@pytest.mark.parametrize("last", [FINE, (200, "")])
def test_a_completion_that_fails_with_status_200_is_asked_for_again(
    serve: Serve, waited: list[float], last: Answer
) -> None:
    """S3 begins its answer before it knows the end; a body without an ETag tells nothing."""
    answers = iter([(200, INTERNAL[1]), last])
    server = serve(lambda _: next(answers))
    assert S3Store(client_of(server.endpoint), "b").complete("k", "id", ['"1"']) == ""
    assert len(server.asked) == 2


def test_a_denial_is_no_matter_of_patience(serve: Serve, waited: list[float]) -> None:
    answers = iter([INTERNAL, DENIED])
    server = serve(lambda _: next(answers))
    with pytest.raises(StoreError) as failure:
        ask(client_of(server.endpoint))
    assert describe(failure.value, "listing s3://b/x/", "s3:ListBucket") == (
        "listing s3://b/x/ failed: AccessDenied: No. (needs s3:ListBucket)"
    )


def test_a_check_is_not_as_patient(serve: Serve, waited: list[float]) -> None:
    server = serve(lambda _: SLOW_DOWN)
    with pytest.raises(StoreError):
        ask(client_of(server.endpoint, max_attempts=2))
    assert len(server.asked) == 2


@pytest.mark.parametrize("fault", [SLOW_DOWN, INTERNAL, RESET])
def test_requests_at_once_do_not_use_up_each_others_attempts(
    serve: Serve, waited: list[float], fault: Answer
) -> None:
    """16 at once, each failing 9 times: 144 retries, where botocore's quota ends at 35 or 100."""
    failed: dict[str, int] = {}
    lock = threading.Lock()

    def fail_nine_times(asked: Asked) -> Answer:
        with lock:
            failed[asked.path] = failed.get(asked.path, 0) + 1
            return fault if failed[asked.path] < 10 else FINE

    client = client_of(serve(fail_nine_times).endpoint)
    with ThreadPoolExecutor(16) as pool:
        requests = [
            pool.submit(client.list_objects_v2, Bucket="b", Prefix=str(n)) for n in range(16)
        ]
        for request in requests:
            request.result()
    assert set(failed.values()) == {10}


def test_where_nothing_listens_each_attempt_counts(waited: list[float]) -> None:
    with socket.socket() as taken, pytest.raises(UnreachableError) as failure:
        taken.bind(("127.0.0.1", 0))
        ask(client_of(f"http://127.0.0.1:{taken.getsockname()[1]}", max_attempts=3))
    assert "; gave up after 3 attempts; check the endpoint" in describe(failure.value, "listing")
