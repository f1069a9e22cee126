"""What a server is asked and sends, counted: connections to here are forwarded to it."""

from __future__ import annotations

import contextlib
import re
import socket
import socketserver
import threading
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from urllib.parse import urlsplit

CHUNK_BYTES = 256 * 1024

_REQUEST = re.compile(rb"(GET|HEAD|PUT|POST|DELETE) (/\S*) HTTP/1.1\r\n")
_KINDS = {
    b"list-type=": "LIST",
    b"GET uploads": "list uploads",
    b"POST uploads": "begin upload",
    b"partNumber=": "part",
    b"POST uploadId=": "complete",
}


class Forwarder:
    """Forwards from `endpoint` to `upstream`, both like `http://host:port`, while it lasts.

    `bytes` is what came back so far: bodies, and some hundred bytes of headers for each request.
    `requests` are those so far, by their kind in S3.
    """

    def __init__(self, upstream: str) -> None:
        parts = urlsplit(upstream)
        self._address = (parts.hostname or "", parts.port or 80)
        self._counting = threading.Lock()
        self.bytes = 0
        self.requests: Counter[str] = Counter()
        forwarder = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                forwarder._forward(self.request)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            block_on_close = False

        self._server = Server(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Forwarder:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _forward(self, client: socket.socket) -> None:
        with socket.create_connection(self._address) as upstream:
            sender = threading.Thread(
                target=_pump, args=(client, upstream, self._count), daemon=True
            )
            sender.start()
            with contextlib.suppress(OSError):
                while data := upstream.recv(CHUNK_BYTES):
                    with self._counting:
                        self.bytes += len(data)
                    client.sendall(data)
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def _count(self, sent: bytes) -> None:
        # A client sends the head of a request by itself, or before its body.
        if request := _REQUEST.match(sent):
            asked = b"%b %b" % (request[1], request[2].partition(b"?")[2])
            kinds = [kind for sign, kind in _KINDS.items() if sign in asked]
            with self._counting:
                self.requests[kinds[0] if kinds else request[1].decode()] += 1


def _pump(source: socket.socket, target: socket.socket, see: Callable[[bytes], object]) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            see(data)
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
