"""Connections that break, and gzip in pieces of any size."""

import gzip
import io

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError
from hypothesis import example, given
from hypothesis import strategies as st
from support.s3.opened import bucket_of

from dbt.adapters.mzs3.formats.read.compression import _decompressed
from dbt.adapters.mzs3.formats.read.object_error import GONE, NOT_READ, ObjectError
from dbt.adapters.mzs3.source.executor.stored_object import ObjectReader
from dbt.adapters.mzs3.store.reader import MAX_RESUMES

DATA = bytes(range(256)) * 4


class Body:
    """Gives `good` bytes, then fails as told."""

    def __init__(self, data, good, failure):
        self.stream = io.BytesIO(data[:good])
        self.failure = failure
        self.closed = False

    def read(self, size):
        data = self.stream.read(min(size, 100))
        if not data and self.failure is not None:
            raise self.failure
        return data

    def close(self):
        self.closed = True


class Client:
    """An S3 whose every answer breaks off after so many bytes."""

    def __init__(self, breaks, failure):
        self.breaks = list(breaks)
        self.failure = failure
        self.requests = []
        self.bodies = []

    def get_object(self, **request):
        self.requests.append(request)
        start = int(request.get("Range", "bytes=0-")[len("bytes=") : -1])
        rest = DATA[start:]
        good = self.breaks.pop(0) if self.breaks else len(rest)
        failure = self.failure if good < len(rest) else None
        self.bodies.append(Body(rest, good, failure))
        answer = {"Body": self.bodies[-1], "ETag": '"e1"', "ContentLength": len(rest)}
        return {**answer, **partial(start, len(DATA))} if "Range" in request else answer


def partial(start, end, status=206):
    return {
        "ResponseMetadata": {"HTTPStatusCode": status},
        "ContentRange": f"bytes {start}-{end - 1}/{len(DATA)}",
    }


def read_all(client, pauses, etag=None):
    reader = ObjectReader(bucket_of(client, "b"), "k", etag, pause=pauses.append)
    found = b""
    while data := reader.read(1000):
        found += data
    reader.close()
    return found


TIMEOUT = ReadTimeoutError(endpoint_url="http://127.0.0.1")
RESET = ConnectionResetError("reset by peer")


@pytest.mark.parametrize("failure", [TIMEOUT, RESET, None])
def test_a_broken_connection_is_resumed_at_the_byte_reached(failure):
    client, pauses = Client([300, 0, 500], failure), []
    assert read_all(client, pauses) == DATA
    assert [request.get("Range") for request in client.requests] == [
        None,
        "bytes=300-",
        "bytes=300-",
        "bytes=800-",
    ]
    assert [request.get("IfMatch") for request in client.requests] == [None, *['"e1"'] * 3]
    assert all(body.closed for body in client.bodies)
    assert pauses == [0.2, 0.4, 0.2]


def test_a_whole_object_is_one_request():
    client = Client([], None)
    assert read_all(client, [], etag="e1") == DATA
    assert [request["IfMatch"] for request in client.requests] == ['"e1"']


class Careless:
    """A store that answers a GET with a Range as told, whatever was asked for."""

    def __init__(self, data, **answer):
        self.data = data
        self.answer = answer
        self.bodies = []

    def get_object(self, **request):
        first = not self.bodies
        data = DATA if first else self.data
        self.bodies.append(Body(data, 300 if first else len(data), RESET))
        answer = {"Body": self.bodies[-1], "ETag": '"e1"', "ContentLength": len(data)}
        return answer if first else {**answer, **self.answer}


IGNORED = {
    "whole object": (DATA, {"ResponseMetadata": {"HTTPStatusCode": 200}}),
    "no range": (DATA[300:], {"ResponseMetadata": {"HTTPStatusCode": 206}}),
    "nothing": (DATA, {}),
    "another range": (DATA[299:], partial(299, len(DATA))),
    "whole as range": (DATA, partial(0, len(DATA))),
    "whole, said to be a range": (DATA, partial(300, len(DATA))),
}


@pytest.mark.parametrize(("data", "answer"), IGNORED.values(), ids=IGNORED)
def test_a_store_that_ignores_the_range_is_an_error(data, answer):
    pauses = []
    with pytest.raises(ObjectError) as raised:
        read_all(Careless(data, **answer), pauses)
    assert raised.value.problem.startswith(
        "asked for it from byte 300 on, the store sent another part (HTTP "
    )
    assert len(pauses) == 1


@pytest.mark.parametrize(
    "answer",
    [partial(300, len(DATA), status=200), {**partial(300, len(DATA)), "ContentLength": None}],
    ids=["with status 200", "without a length"],
)
def test_a_range_is_taken_by_what_its_content_range_says(answer):
    assert read_all(Careless(DATA[300:], **answer), []) == DATA


@pytest.mark.parametrize("first", [0, 300])
def test_an_object_is_not_a_part_of_it_that_nobody_asked_for(first):
    store = Careless(DATA)
    part = DATA[first : first + 300]
    answer = {"Body": Body(part, len(part), None), "ETag": '"e1"', "ContentLength": len(part)}
    store.get_object = lambda **_: {**answer, **partial(first, first + 300)}
    with pytest.raises(ObjectError, match="asked for it from byte 0 on, the store sent another"):
        read_all(store, [])


def test_a_span_is_not_another_part_of_the_object():
    store = Careless(DATA)
    answer = {"Body": Body(DATA[300:600], 300, None), "ETag": '"e1"', "ContentLength": 300}
    store.get_object = lambda **_: {**answer, **partial(300, 600)}
    with pytest.raises(ObjectError, match="Content-Range bytes 300-599/1024"):
        ObjectReader(bucket_of(store, "b"), "k", byte_range=(0, 300)).read(1000)


def test_a_part_shorter_than_asked_for_is_not_the_end():
    client = Client([300, 200], RESET)
    whole = client.get_object

    def shorter(**request):
        answer = whole(**request)
        if request.get("Range") == "bytes=300-":
            answer.update(ContentLength=200, **partial(300, 500))
            answer["Body"].failure = None
        return answer

    client.get_object = shorter
    assert read_all(client, []) == DATA
    assert [request.get("Range") for request in client.requests][2:] == ["bytes=500-"]


@pytest.mark.parametrize("etag", ["e0", None])
def test_a_store_that_ignores_the_etag_is_an_error(etag):
    store = Careless(DATA[300:], ETag='"e2"', **partial(300, len(DATA)))
    with pytest.raises(ObjectError, match="it was replaced after it was listed: its ETag is no"):
        read_all(store, [], etag)
    assert len(store.bodies) == (1 if etag else 2)


def test_it_gives_up_without_progress():
    client, pauses = Client([300] + [0] * 99, TIMEOUT), []
    with pytest.raises(ObjectError) as raised:
        read_all(client, pauses)
    assert raised.value.text("s3://b/k", "lake.orders") == (
        "lake.orders: object s3://b/k: reading it from byte 300 failed: Read timeout on endpoint "
        'URL: "http://127.0.0.1". Nothing of it was kept; run again'
    )
    assert len(pauses) == MAX_RESUMES
    assert len(client.requests) == 1 + MAX_RESUMES


class Refusing:
    def __init__(self, failure):
        self.failure = failure

    def get_object(self, **request):
        raise self.failure


def test_a_permission_that_is_missing_is_named_at_once():
    denied = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetObject")
    pauses = []
    with pytest.raises(ObjectError) as raised:
        read_all(Refusing(denied), pauses)
    assert raised.value.problem == (
        "reading it from byte 0 failed: AccessDenied: no (needs s3:GetObject)"
    )
    assert pauses == []


@pytest.mark.parametrize(
    ("code", "cause", "says"),
    [
        ("AccessDenied", NOT_READ, "needs s3:GetObject). Nothing of it was kept; run again"),
        ("SlowDown", NOT_READ, "run again later when less else uses the bucket"),
        ("NoSuchKey", GONE, "it was removed after it was listed. Put it back, or run again"),
        ("PreconditionFailed", GONE, "its ETag is no longer e1. Do not overwrite objects"),
        ("InvalidObjectState", "", "it is archived, so that it can't be read (InvalidObjectState"),
    ],
)
def test_what_an_object_is_not_read_for(code, cause, says):
    refused = ClientError({"Error": {"Code": code, "Message": "no"}}, "GetObject")
    with pytest.raises(ObjectError) as raised:
        read_all(Refusing(refused), [], etag="e1")
    assert raised.value.cause == cause
    assert says in raised.value.text("s3://b/k", "lake.orders")


def test_an_endpoint_that_does_not_answer():
    failure = EndpointConnectionError(endpoint_url="http://127.0.0.1:1")
    with pytest.raises(ObjectError) as raised:
        read_all(Refusing(failure), [])
    assert "Could not connect to the endpoint URL" in raised.value.problem
    assert raised.value.cause == NOT_READ


class Trickle:
    """A stream that gives as many bytes at a time as it likes."""

    def __init__(self, data, sizes):
        self.stream = io.BytesIO(data)
        self.sizes = sizes
        self.calls = 0

    def read(self, size):
        self.calls += 1
        return self.stream.read(min(size, self.sizes[self.calls % len(self.sizes)]))


def gunzipped(source):
    """Reads what is in it, which may be any bytes: whether that is text is not looked at."""
    return _decompressed(source.read, "gzip", b"")


@example([b"Obj\1"], 0, [50], 400)  # as a file of Avro begins
@given(
    st.lists(st.binary(max_size=300), max_size=4),
    st.integers(0, 5),
    st.lists(st.integers(1, 50), min_size=1, max_size=5),
    st.integers(1, 400),
)
def test_members_of_gzip_one_after_the_other(parts, padding, sizes, size):
    data = b"".join(gzip.compress(part) + b"\0" * padding for part in parts)
    gunzip = gunzipped(Trickle(data, sizes))
    found = []
    while piece := gunzip(size):
        assert len(piece) <= size
        found.append(piece)
    assert b"".join(found) == b"".join(parts)


@given(st.binary(min_size=1, max_size=300), st.data())
def test_gzip_that_is_cut_is_an_error(part, data):
    whole = gzip.compress(part)
    cut = data.draw(st.integers(2, len(whole) - 1))
    with pytest.raises(ObjectError, match="its gzip stream ends early"):
        gunzip = gunzipped(io.BytesIO(whole[:cut]))
        while gunzip(100):
            pass


def test_gzip_with_a_wrong_checksum_is_an_error():
    whole = bytearray(gzip.compress(b"abc"))
    whole[-8] ^= 1
    with pytest.raises(ObjectError, match=r"it is not valid gzip \(CRC check failed"):
        gunzip = gunzipped(io.BytesIO(bytes(whole)))
        while gunzip(100):
            pass


def test_what_compresses_well_is_not_held_at_once():
    source = io.BytesIO(gzip.compress(b"\0" * 50_000_000))
    gunzip = gunzipped(source)
    assert len(gunzip(1000)) == 1000
