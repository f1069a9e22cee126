"""A bucket of any number of small CSV objects that are nowhere: a server that makes them up.

It answers ListObjectsV2, with StartAfter, ContinuationToken, Prefix and Delimiter, and GET of one
object, and counts both; it knows nothing of signatures. It is a process of its own, which ends
with the context.
"""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import json
import random
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from urllib.parse import parse_qs, quote, unquote, urlsplit

from dbt.adapters.mzs3.store.connection import AwsConnection

PREFIX = "orders/"
PAGE = 1000
HEADER = b"id,text\n"
_FIRST = datetime(2026, 1, 1, tzinfo=timezone.utc)
_FOLDERS = 365


class MadeUpBucket:
    """The server as its user sees it; `connection` is how to sign for it."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.connection = AwsConnection(
            region="us-east-1",
            endpoint=f"http://{address}",
            addressing_style="path",
            access_key_id="bench",
            secret_access_key="bench",
        )

    def add(self, count: int, *, late: bool) -> None:
        """So many new objects: scattered among the others with `late`, else behind them."""
        self._control(f"add?count={count}&late={int(late)}")

    def requests(self) -> dict[str, int]:
        """How many of each kind were answered since this was last asked."""
        found: dict[str, int] = self._control("requests")
        return found

    def _control(self, what: str) -> dict[str, int]:
        with urllib.request.urlopen(f"http://{self._address}/-/{what}") as answer:
            found: dict[str, int] = json.load(answer)
            return found


@contextlib.contextmanager
def made_up_bucket(count: int, size: int = 100, *, folders: bool = True) -> Iterator[MadeUpBucket]:
    """A bucket of `count` objects of `size` bytes, for as long as the context lasts."""
    command = [sys.executable, __file__, str(count), str(size), str(int(folders))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if not address:
            raise SystemExit("the server of the made-up bucket did not start")
        yield MadeUpBucket(address)
    finally:
        process.terminate()
        process.wait()


class _Bucket:
    """The keys in their order, and what is answered about them."""

    def __init__(self, count: int, size: int, folders: bool) -> None:
        self.folders = folders
        self.size = size
        per_folder = -(-count // _FOLDERS)
        self.keys = [self._key(number, per_folder) for number in range(count)]
        self.requests: Counter[str] = Counter()
        self._dice = random.Random(4)
        self._added = 0

    def _key(self, number: int, per_folder: int) -> str:
        if not self.folders:
            return f"{PREFIX}{number:010}.csv"
        day = (_FIRST + timedelta(days=number // per_folder)).date()
        return f"{PREFIX}dt={day}/{number:010}.csv"

    def add(self, count: int, late: bool) -> None:
        for _ in range(count):
            self._added += 1
            at = self._dice.choice(self.keys) if late else self.keys[-1].partition("_")[0]
            bisect.insort(self.keys, f"{at}_{self._added:010}.csv")

    def answer(self, target: str) -> bytes:
        """What a GET of that path is answered, without the head."""
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path.startswith("/-/"):
            return self._control(parts.path, query)
        if "list-type" in query:
            self.requests["LIST"] += 1
            return self._list(query)
        self.requests["GET"] += 1
        return self._object(unquote(parts.path))

    def _control(self, path: str, query: dict[str, str]) -> bytes:
        if path == "/-/add":
            self.add(int(query["count"]), query["late"] == "1")
            return b"{}"
        found, self.requests = self.requests, Counter()
        return json.dumps(found).encode()

    def _object(self, path: str) -> bytes:
        key = path.split("/", 2)[2]
        number = key.encode()
        filling = max(0, self.size - len(HEADER) - len(number) - 2)
        return HEADER + number + b"," + b"x" * filling + b"\n"

    def _list(self, query: dict[str, str]) -> bytes:
        prefix = query.get("prefix", "")
        token = bytes.fromhex(query.get("continuation-token", "")).decode()
        start = token or query.get("start-after", "")
        at = max(bisect.bisect_right(self.keys, start), bisect.bisect_left(self.keys, prefix))
        end = bisect.bisect_left(self.keys, prefix[:-1] + chr(ord(prefix[-1]) + 1))
        if "delimiter" in query:
            entries, last, at = self._folders(prefix, at, end)
        else:
            keys = self.keys[at : min(at + PAGE, end)]
            at += len(keys)
            entries, last = "".join(map(self._entry, keys)), keys[-1] if keys else ""
        more = at < end
        here = f"<NextContinuationToken>{last.encode().hex()}</NextContinuationToken>"
        end_of_page = f"<IsTruncated>{str(more).lower()}</IsTruncated>{here if more else ''}"
        return (
            '<?xml version="1.0" encoding="UTF-8"?>'
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Prefix>{prefix}</Prefix><MaxKeys>{PAGE}</MaxKeys><EncodingType>url</EncodingType>"
            f"{end_of_page}{entries}</ListBucketResult>"
        ).encode()

    def _folders(self, prefix: str, at: int, end: int) -> tuple[str, str, int]:
        entries: list[str] = []
        last = ""
        while at < end and len(entries) < PAGE:
            last = self.keys[at]
            name, slash, _ = last[len(prefix) :].partition("/")
            if slash:
                folder = f"{prefix}{name}/"
                entries.append(
                    f"<CommonPrefixes><Prefix>{quote(folder)}</Prefix></CommonPrefixes>"
                )
                last = f"{prefix}{name}/\U0010ffff"
                at = bisect.bisect_left(self.keys, f"{prefix}{name}0")
            else:
                entries.append(self._entry(last))
                at += 1
        return "".join(entries), last, at

    def _entry(self, key: str) -> str:
        return (
            f"<Contents><Key>{quote(key)}</Key><LastModified>{_modified(key)}</LastModified>"
            f"<ETag>&quot;{_etag(key)}&quot;</ETag><Size>{self.size}</Size>"
            "<StorageClass>STANDARD</StorageClass></Contents>"
        )


def _modified(key: str) -> str:
    """Half a minute after the object before; later ones, in a year's time."""
    name = key.rpartition("/")[2]
    number = int(name[:10]) + (2_000_000 if "_" in name else 0)
    return (_FIRST + timedelta(seconds=30 * number)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _etag(key: str) -> str:
    return key.encode().hex()[-32:]


class _Protocol(asyncio.Protocol):
    """HTTP/1.1 as far as boto3 needs it: GETs without a body, one after the other."""

    bucket: _Bucket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._received = b""
        self.bucket.requests["connection"] += 1

    def data_received(self, data: bytes) -> None:
        self._received += data
        while b"\r\n\r\n" in self._received:
            head, _, self._received = self._received.partition(b"\r\n\r\n")
            target = head.split(b" ", 2)[1].decode()
            body = self.bucket.answer(target)
            key = unquote(urlsplit(target).path).split("/", 2)[-1]
            self._transport.write(
                f'HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nETag: "{_etag(key)}"\r\n'
                "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n".encode()
                + body
            )


async def _serve(bucket: _Bucket) -> None:
    _Protocol.bucket = bucket
    server = await asyncio.get_running_loop().create_server(_Protocol, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    print(f"{host}:{port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(_Bucket(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "1")))
