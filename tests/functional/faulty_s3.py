"""A proxy in front of an S3 server that refuses, delays or watches single requests."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from dbt.adapters.mzs3.aws.connection import AwsConnection

_ERROR = (
    '<?xml version="1.0" encoding="UTF-8"?><Error><Code>{}</Code><Message>{}</Message></Error>'
)


@dataclass(frozen=True)
class Request:
    """One request as the rules see it; `action` is the S3 API it calls."""

    method: str
    key: str
    query: dict[str, list[str]]
    body: bytes = b""

    @property
    def action(self) -> str:
        match self.method:
            case "POST" if "uploads" in self.query:
                return "CreateMultipartUpload"
            case "POST" if "uploadId" in self.query:
                return "CompleteMultipartUpload"
            case "PUT" if "partNumber" in self.query:
                return "UploadPart"
            case "PUT":
                return "PutObject"
            case "DELETE" if "uploadId" in self.query:
                return "AbortMultipartUpload"
            case "DELETE":
                return "DeleteObject"
            case "GET" if "list-type" in self.query:
                return "ListObjectsV2"
            case "GET" if "uploads" in self.query:
                return "ListMultipartUploads"
        return f"{self.method}Object"

    @property
    def part_number(self) -> int:
        return int(self.query.get("partNumber", ["0"])[0])


Rule = Callable[[Request], "bool | str"]


class FaultyS3:
    """Forwards to `upstream`; a request for which the rule is true is answered 403 AccessDenied,
    one for which it is a text is answered 404 with that code.

    `watch` is called for every request before it is forwarded; it may block. `seen` holds them.
    """

    def __init__(self, upstream: str) -> None:
        self._host = urlsplit(upstream).netloc
        self.deny: Rule = lambda _: False
        self.watch: Callable[[Request], None] = lambda _: None
        self.seen: list[Request] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def reset(self) -> None:
        self.deny = lambda _: False
        self.watch = lambda _: None
        self.seen = []

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
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                parts = urlsplit(self.path)
                query = parse_qs(parts.query, keep_blank_values=True)
                request = Request(self.command, parts.path, query, body)
                proxy.seen.append(request)
                proxy.watch(request)
                if refused := proxy.deny(request):
                    status = 404 if isinstance(refused, str) else 403
                    code = refused if isinstance(refused, str) else "AccessDenied"
                    text = "Access Denied" if code == "AccessDenied" else "It is not there."
                    body = _ERROR.format(code, text).encode()
                    self._answer(status, {"Content-Type": "application/xml"}, body)
                    return
                upstream = http.client.HTTPConnection(proxy._host, timeout=60)
                headers = dict(self.headers.items())
                upstream.request(self.command, self.path, body, headers)
                answer = upstream.getresponse()
                self._answer(answer.status, dict(answer.getheaders()), answer.read())
                upstream.close()

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

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler


def connection_to(endpoint: str) -> AwsConnection:
    """How the tests sign for a server on loopback."""
    return AwsConnection(
        endpoint=endpoint,
        addressing_style="path",
        access_key_id="testing",
        secret_access_key="testing",
    )
