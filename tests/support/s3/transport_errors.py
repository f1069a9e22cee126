"""Every exception of what carries S3's answers, made from the libraries' own trees of classes."""

from __future__ import annotations

import builtins
import http.client
import inspect
import io
import string
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import botocore.parsers
import s3transfer.exceptions
import urllib3.exceptions
from botocore.exceptions import BotoCoreError, HTTPClientError, IncompleteReadError

AT_ONCE, IN_MIDDLE, AT_END, ON_ASKING, ON_CLOSING = "start", "middle", "end", "request", "close"
PLACES = (ON_ASKING, AT_ONCE, IN_MIDDLE, AT_END, ON_CLOSING)
_OURS = "dbt.adapters.mzs3"
_OF_THE_LANGUAGE = {"builtins", "ssl", "socket", "http.client"}


def _below(base: type[Any]) -> Iterator[type[Any]]:
    yield base
    for child in base.__subclasses__():
        yield from _below(child)


def _classes() -> dict[str, type[Exception]]:
    found = {
        *_below(urllib3.exceptions.HTTPError),
        *_below(BotoCoreError),
        *_below(botocore.parsers.ResponseParserError),
        *(one for one in _below(OSError) if one.__module__ in _OF_THE_LANGUAGE),
        *(one for one in _below(http.client.HTTPException)),
        *(
            one
            for one in vars(s3transfer.exceptions).values()
            if isinstance(one, type) and issubclass(one, Exception)
        ),
        # What a pool, a codec or a response that another thread has closed may raise.
        *(getattr(builtins, name) for name in ("ValueError", "AttributeError", "EOFError")),
    }
    of_others = [one for one in found if not one.__module__.startswith((_OURS, "support"))]
    return {f"{one.__module__}.{one.__qualname__}": one for one in sorted(of_others, key=str)}


CLASSES = _classes()
"""By full name: those of urllib3, botocore, s3transfer, http.client, ssl and the sockets'."""
RESUMED = tuple(
    one
    for one in CLASSES.values()
    if not issubclass(one, (BotoCoreError, botocore.parsers.ResponseParserError))
    or issubclass(one, (HTTPClientError, IncompleteReadError))
)
"""Those after which the same request may well succeed."""


def made(kind: type[Exception]) -> Exception:
    """An exception of the class, however it is made."""
    if issubclass(kind, BotoCoreError):
        names = [name for _, name, _, _ in string.Formatter().parse(kind.fmt) if name]
        wanted = inspect.signature(kind).parameters
        takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in wanted.values())
        return kind(**dict.fromkeys([*names, "error"] if takes_any else wanted, "broken"))
    response = SimpleNamespace(tell=lambda: 1, length_remaining=2)
    somehow = ("broken",), (None, "broken"), (None, None, "broken"), (1, 2), (), (response, b"2")
    for given in somehow:
        try:
            one = kind(*given)
            str(one)
        except (TypeError, AttributeError):
            continue
        return one
    raise AssertionError(f"no way to make a {kind}")


class FailingBody(io.RawIOBase):
    """A body of the data whose reading fails: at its start, in its middle, or at its last byte."""

    def __init__(self, data: bytes, place: str, error: Exception) -> None:
        super().__init__()
        self._data = io.BytesIO(data)
        stops = {AT_ONCE: 0, IN_MIDDLE: len(data) // 2, AT_END: len(data) - 1}
        self._stop = stops.get(place)
        self._place, self._error = place, error

    def read(self, size: int | None = -1, /) -> bytes:
        whole = size is None or size < 0
        if self._stop is None:
            return self._data.read() if whole else self._data.read(size)
        if whole or self._data.tell() >= self._stop:
            raise self._error
        return self._data.read(min(size or 0, self._stop - self._data.tell()))

    def close(self) -> None:
        super().close()
        if self._place == ON_CLOSING:
            self._place = ""
            raise self._error


class FailingS3:
    """Answers GET of one object, and of ranges of it; `times` answers fail, in that place."""

    def __init__(self, data: bytes, place: str, error: Exception, times: int = 1) -> None:
        self._data, self._place, self._error = data, place, error
        self._left = times
        self.failed = 0

    def get_object(self, *, Range: str = "", **_: Any) -> dict[str, Any]:
        first, _, last = Range.removeprefix("bytes=").partition("-")
        start, end = int(first or 0), int(last or len(self._data) - 1) + 1
        part, place = self._data[start:end], ""
        if self._left:
            self._left -= 1
            self.failed += 1
            place = self._place
        if place == ON_ASKING:
            raise self._error
        answer: dict[str, Any] = {
            "Body": FailingBody(part, place, self._error),
            "ETag": '"one"',
            "ContentLength": len(part),
        }
        if Range:
            answer["ContentRange"] = f"bytes {start}-{end - 1}/{len(self._data)}"
        return answer
