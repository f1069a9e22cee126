"""Whatever befalls a connection while an object is read, users read of it in our words."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.s3.answering import Answering
from support.s3.opened import bucket_of, prefix_of, state_of
from support.s3.transport_errors import (
    CLASSES,
    ON_ASKING,
    ON_CLOSING,
    PLACES,
    RESUMED,
    FailingS3,
    made,
)

import dbt.adapters.mzs3.errors as anchor
from dbt.adapters.mzs3.errors import ExecutorError, S3Error, ShardError
from dbt.adapters.mzs3.export.verify_copy import ObjectFile
from dbt.adapters.mzs3.formats.read.object_error import ObjectError
from dbt.adapters.mzs3.shard.batch.read import open_file
from dbt.adapters.mzs3.source.executor.stored_object import ObjectReader
from dbt.adapters.mzs3.store import check, reader
from dbt.adapters.mzs3.store.client import s3_client
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.failures import StoreError, describe
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.reader import ObjectStream
from dbt.adapters.mzs3.store.store import ListedObject

# From Python 3.13 on, a body whose close() fails is told of once more as it is collected.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

DATA = bytes(range(256)) * 4
LOCATION = S3Location("b", "x/")
LISTED = ListedObject("x/k", '"one"', len(DATA))
Read = Callable[[Any], bytes | None]

every_place = pytest.mark.parametrize("place", PLACES)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "FIRST_PAUSE_S", 0.0)


def in_pieces(read: Callable[[int], bytes]) -> bytes:
    return b"".join(iter(lambda: read(100), b""))


def streamed(client: Any) -> bytes:
    return in_pieces(ObjectStream(bucket_of(client, "b"), "x/k", '"one"').read)


def of_a_source(client: Any) -> bytes:
    return in_pieces(ObjectReader(bucket_of(client, "b"), "x/k", '"one"').read)


def of_a_shard(client: Any) -> bytes:
    return open_file(bucket_of(client, "b"), S3Location("b", ""), LISTED).read()


def verified(client: Any) -> bytes:
    return ObjectFile(prefix_of(client, LOCATION), LISTED).read()


def small(client: Any) -> bytes | None:
    return prefix_of(client, LOCATION).read("k")


def state(client: Any) -> None:
    with contextlib.suppress(ShardError):  # the bytes are none
        state_of(client, LOCATION).read()


def checked(client: Any) -> None:
    client.put_object = client.delete_object = lambda **_: {"ETag": "e"}

    def one(need: Any, action: Callable[[], object], *_: Any, **__: Any) -> check.Check:
        return check._checked("lake", "s3://b/x/", need, action)

    check._of_object(one, bucket_of(client), "x/k", "s3://b/x/k", lists=True)


# What reads each object, and what it raises that can't read it.
RESUMING: dict[Read, Any] = {
    streamed: StoreError,
    of_a_source: ObjectError,
    of_a_shard: ExecutorError,
    verified: StoreError,
}
READERS = {**RESUMING, small: StoreError, state: S3Error, checked: S3Error}
every_resuming = pytest.mark.parametrize("read", RESUMING, ids=lambda read: read.__name__)
every_reader = pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)


def test_the_matrix_has_what_was_once_missed() -> None:
    wanted = """
        urllib3.exceptions.SSLError urllib3.exceptions.IncompleteRead
        urllib3.exceptions.ProtocolError urllib3.exceptions.ReadTimeoutError
        urllib3.exceptions.DecodeError botocore.exceptions.ResponseStreamingError
        botocore.exceptions.IncompleteReadError botocore.exceptions.ConnectionClosedError
        botocore.exceptions.EndpointConnectionError botocore.exceptions.HTTPClientError
        botocore.parsers.ResponseParserError s3transfer.exceptions.RetriesExceededError
        builtins.ConnectionResetError builtins.BrokenPipeError builtins.TimeoutError
        ssl.SSLError ssl.SSLEOFError http.client.IncompleteRead builtins.OSError
    """
    assert set(wanted.split()) <= set(CLASSES)


@every_place
@every_resuming
def test_what_breaks_once_is_resumed(read: Read, place: str) -> None:
    wrong = {}
    for kind in RESUMED:
        client = FailingS3(DATA, place, made(kind))
        try:
            found = read(client)
        except Exception as exc:
            wrong[str(kind)] = shown(exc)
        else:
            assert found == DATA, kind
    assert wrong == {}


@every_resuming
def test_what_would_fail_again_is_not_asked_for_again(read: Read) -> None:
    """Such as a request without keys, or one with arguments that are none."""
    tried = {}
    for name, kind in CLASSES.items():
        client = FailingS3(DATA, ON_ASKING, made(kind), times=99)
        with contextlib.suppress(READERS[read]):
            read(client)
        tried[name] = client.failed
    resumed = {name for name, times in tried.items() if times > 1}
    assert resumed == {name for name, kind in CLASSES.items() if kind in RESUMED}
    assert {"botocore.exceptions.NoCredentialsError"} <= {*CLASSES} - resumed


@every_reader
def test_an_answer_that_is_none_of_s3_says_so(read: Read) -> None:
    page = "<!DOCTYPE html><html><body>Console<br></body></html>"
    with Answering(lambda _: (200, page)) as server:
        connection = AwsConnection(
            endpoint=server.endpoint,
            addressing_style="path",
            access_key_id="testing",
            secret_access_key="testing",
        )
        with pytest.raises(READERS[read]) as raised:
            read(s3_client(connection, max_attempts=1))
    exc = raised.value
    text = describe(exc, "reading it") if isinstance(exc, StoreError) else str(exc)
    assert "the answer has no ETag; it is not S3's, but a proxy's, say" in text
    assert len(server.asked) == 1


@every_place
@every_reader
def test_what_breaks_for_good_is_told_in_one_line(read: Read, place: str) -> None:
    wrong = {}
    for name, kind in CLASSES.items():
        client = FailingS3(DATA, place, made(kind), times=99)
        try:
            read(client)
        except READERS[read] as exc:
            text = describe(exc, "reading it") if isinstance(exc, StoreError) else str(exc)
            if not text.strip() or "\n" in text:
                wrong[name] = text
        except Exception as exc:
            wrong[name] = shown(exc)
        else:
            if place != ON_CLOSING:  # the bytes were there
                wrong[name] = "nothing was raised"
    assert wrong == {}


def shown(exc: Exception) -> str:
    return f"{type(exc).__module__}.{type(exc).__qualname__}: {exc}"


def test_objects_are_asked_for_in_one_place() -> None:
    package = Path(anchor.__file__).parent
    asking = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in {"get_object", "download_fileobj"}
    }
    assert asking == {"store/s3.py"}
