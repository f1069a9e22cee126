"""A proxy in front of an S3 server that refuses, delays, loses or watches single requests."""

from __future__ import annotations

import contextlib
import http.client
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from botocore.exceptions import ClientError

from dbt.adapters.mzs3.store.connection import AwsConnection
from support.s3.real_stores import ACCESS_KEY_ID, SECRET_ACCESS_KEY

_ERROR = (
    '<?xml version="1.0" encoding="UTF-8"?><Error><Code>{}</Code><Message>{}</Message></Error>'
)


@dataclass(frozen=True)
class Request:
    """One request as the rules see it; `action` is the S3 API it calls.

    A part that is only sent to see whether parts are taken is an `UploadProbe`.
    """

    method: str
    key: str
    query: dict[str, list[str]]
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    """By name in small letters."""

    @property
    def action(self) -> str:
        match self.method:
            case "POST" if "uploads" in self.query:
                return "CreateMultipartUpload"
            case "POST" if "uploadId" in self.query:
                return "CompleteMultipartUpload"
            case "PUT" if "partNumber" in self.query:
                return "UploadProbe" if "/_mzs3_" in self.key else "UploadPart"
            case "PUT":
                return "CopyObject" if "x-amz-copy-source" in self.headers else "PutObject"
            case "DELETE" if "uploadId" in self.query:
                return "AbortMultipartUpload"
            case "DELETE":
                return "DeleteObject"
            case "POST" if "delete" in self.query:
                return "DeleteObjects"
            case "GET" if "list-type" in self.query:
                return "ListObjectsV2"
            case "GET" if "uploads" in self.query:
                return "ListMultipartUploads"
            case "GET" if "uploadId" in self.query:
                return "ListParts"
        return f"{self.method}Object"

    @property
    def part_number(self) -> int:
        return int(self.query.get("partNumber", ["0"])[0])


Rule = Callable[[Request], "bool | str"]


def has_no_condition(request: Request) -> bool:
    """What the policy of a bucket refuses that demands conditions: see docs/permissions.md."""
    makes_object = request.action in {"PutObject", "CopyObject", "CompleteMultipartUpload"}
    conditions = {"if-none-match", "if-match"}.intersection(request.headers)
    return makes_object and "tagging" not in request.query and not conditions


def demanding_conditions(client: Any) -> Any:
    """The client of a bucket in this process whose policy demands conditions."""

    def refuse(model: Any, params: Any, **_: Any) -> None:
        if not {"If-None-Match", "If-Match"}.intersection(params["headers"]):
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "No."}}, model.name)

    for action in ("PutObject", "CopyObject", "CompleteMultipartUpload"):
        client.meta.events.register(f"before-call.s3.{action}", refuse)
    return client


class Fault(Enum):
    """What can befall a request that is not refused."""

    SLOW_DOWN = "answered 503 SlowDown"
    INTERNAL_ERROR = "answered 500 InternalError"
    RESET = "the connection is reset before S3 has heard of it"
    CUT = "the connection is reset in the middle of the body"
    LOST = "S3 has done it, but the connection is reset in the place of its answer"
    LATE = "forwarded after a pause"


_UNAVAILABLE = {Fault.SLOW_DOWN: (503, "SlowDown"), Fault.INTERNAL_ERROR: (500, "InternalError")}
_PAUSE_S = 0.2


class Flaky:
    """Faults for a share of all requests: the same for a seed, in whatever order they come.

    `befallen` counts them.
    """

    def __init__(self, seed: int, share: float) -> None:
        self._seed = seed
        self._share = share
        self._times: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.befallen: Counter[Fault] = Counter()

    def __call__(self, request: Request) -> Fault | None:
        _, _, key = request.key.removeprefix("/").partition("/")  # the same in every bucket
        name = f"{request.action} {key} {request.part_number}"
        with self._lock:
            self._times[name] += 1
            dice = random.Random(f"{self._seed} {name} {self._times[name]}")
            if dice.random() >= self._share:
                return None
            fault = dice.choice(list(Fault))
            self.befallen[fault] += 1
            return fault


class FaultyS3:
    """Forwards to `upstream`; a request for which the rule is true is answered 403 AccessDenied,
    one for which it is a text is answered 404 with that code.

    `watch` is called for every request before it is forwarded; it may block. `seen` holds them,
    `sent` counts the bytes of the answers' bodies.
    `fault` says what befalls a request, or None; it is asked before the body has come.
    """

    def __init__(self, upstream: str) -> None:
        self._host = urlsplit(upstream).netloc
        self.deny: Rule = lambda _: False
        self.watch: Callable[[Request], None] = lambda _: None
        self.fault: Callable[[Request], Fault | None] = lambda _: None
        self.seen: list[Request] = []
        self.sent = 0
        self._counting = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def reset(self) -> None:
        self.deny = lambda _: False
        self.watch = lambda _: None
        self.fault = lambda _: None
        self.seen = []
        self.sent = 0

    def __enter__(self) -> FaultyS3:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                parts = urlsplit(self.path)
                query = parse_qs(parts.query, keep_blank_values=True)
                fault = proxy.fault(Request(self.command, parts.path, query))
                length = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(length // 2 if fault is Fault.CUT else length)
                if fault in (Fault.RESET, Fault.CUT):
                    self._reset()
                    return
                names = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.command, parts.path, query, body, names)
                proxy.seen.append(request)
                proxy.watch(request)
                if (
                    request.action == "DeleteObjects"
                ):  # so that each key is a request that rules see
                    body = _ERROR.format("NotImplemented", "It is not known here.").encode()
                    self._answer(501, {"Content-Type": "application/xml"}, body)
                    return
                if refused := proxy.deny(request):
                    status = 404 if isinstance(refused, str) else 403
                    code = refused if isinstance(refused, str) else "AccessDenied"
                    text = "Access Denied" if code == "AccessDenied" else "It is not there."
                    body = _ERROR.format(code, text).encode()
                    self._answer(status, {"Content-Type": "application/xml"}, body)
                    return
                if fault in _UNAVAILABLE:
                    status, code = _UNAVAILABLE[fault]
                    body = _ERROR.format(code, "Please try again.").encode()
                    self._answer(status, {"Content-Type": "application/xml"}, body)
                    return
                if fault is Fault.LATE:
                    time.sleep(_PAUSE_S)
                upstream = http.client.HTTPConnection(proxy._host, timeout=60)
                headers = dict(self.headers.items())
                upstream.request(self.command, self.path, body, headers)
                answer = upstream.getresponse()
                answered = answer.status, dict(answer.getheaders()), answer.read()
                upstream.close()
                if fault is Fault.LOST:
                    self._reset()
                else:
                    self._answer(*answered)

            def _reset(self) -> None:
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.close_connection = True

            def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
                self.send_response_only(status)
                hop = {"connection", "transfer-encoding", "content-length"}
                for name, value in headers.items():
                    if name.lower() not in hop:
                        self.send_header(name, value)
                length = headers.get("Content-Length", len(body))
                self.send_header("Content-Length", str(len(body) if body else length))
                self.end_headers()
                # A client that was killed does not wait for its answer.
                with contextlib.suppress(ConnectionError):
                    if self.command != "HEAD":
                        self.wfile.write(body)
                        with proxy._counting:
                            proxy.sent += len(body)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler


def connection_to(endpoint: str) -> AwsConnection:
    """How the tests sign for a server on loopback."""
    return AwsConnection(
        endpoint=endpoint,
        addressing_style="path",
        access_key_id=ACCESS_KEY_ID,
        secret_access_key=SECRET_ACCESS_KEY,
    )
