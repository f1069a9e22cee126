"""A part of an object is exactly what was asked for, however the store and the network behave."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pytest
from support.s3.opened import bucket_of

from dbt.adapters.mzs3.store.failures import BrokenError, ReplacedError, WrongRangeError
from dbt.adapters.mzs3.store.reader import MAX_RESUMES, ObjectStream

DATA = bytes(range(256)) * 4


class Body(io.BytesIO):
    """Breaks after `whole` bytes, if that is not None."""

    def __init__(self, data: bytes, whole: int | None) -> None:
        super().__init__(data if whole is None else data[:whole])
        self._breaks = whole is not None

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        if self._breaks and not data:
            raise ConnectionResetError("the connection broke")
        return data


class Store:
    """Answers GET of one object; `breaks` has where the next bodies break."""

    def __init__(self, breaks: list[int] | None = None, **answer: Any) -> None:
        self.breaks = breaks or []
        self.answer = answer
        self.asked: list[str] = []
        self.bodies: list[Body] = []

    def get_object(self, **request: Any) -> dict[str, Any]:
        assert request["IfMatch"] == '"one"'
        self.asked.append(request["Range"])
        first, last = map(int, request["Range"].removeprefix("bytes=").split("-"))
        part = DATA[first : last + 1]
        self.bodies.append(Body(part, self.breaks.pop(0) if self.breaks else None))
        return {
            "Body": self.bodies[-1],
            "ETag": '"one"',
            "ContentLength": len(part),
            "ContentRange": f"bytes {first}-{last}/{len(DATA)}",
            **self.answer,
        }


def part(store: Store, start: int, end: int, waits: list[float] | None = None) -> bytes:
    client: Any = store
    pauses = [] if waits is None else waits
    stream = ObjectStream(
        bucket_of(client, "acme"), "k", '"one"', byte_range=(start, end), pause=pauses.append
    )
    with contextlib.closing(stream):
        return stream.rest()


def test_a_part() -> None:
    store = Store()
    assert part(store, 10, 300) == DATA[10:300]
    assert store.asked == ["bytes=10-299"]
    assert all(body.closed for body in store.bodies)


def test_a_broken_connection_is_resumed_at_the_byte_reached() -> None:
    store, waits = Store([100, 0, 50]), list[float]()
    assert part(store, 10, 300, waits) == DATA[10:300]
    assert store.asked == [f"bytes={start}-299" for start in (10, 110, 110, 160)]
    assert waits == [0.2, 0.4, 0.2]


def test_without_progress_it_gives_up() -> None:
    store = Store([5] + [0] * 20)
    with pytest.raises(BrokenError, match="ConnectionResetError: the connection broke"):
        part(store, 0, 10)
    assert len(store.asked) == 1 + MAX_RESUMES


def test_the_answer_has_to_be_that_object() -> None:
    with pytest.raises(ReplacedError):
        part(Store(ETag='"two"'), 0, 10)


@pytest.mark.parametrize(
    "sent", ["bytes 0-9/1024", "bytes 10-12/1024", None], ids=["start", "length", "whole"]
)
def test_the_answer_has_to_be_that_part(sent: str | None) -> None:
    with pytest.raises(
        WrongRangeError, match="asked for it from byte 10 on, the store sent another"
    ):
        part(Store(ContentRange=sent), 10, 20)
