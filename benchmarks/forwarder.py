"""What a server sends, counted: connections to here are forwarded to it."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from types import TracebackType
from urllib.parse import urlsplit

CHUNK_BYTES = 256 * 1024


class Forwarder:
    """Forwards from `endpoint` to `upstream`, both like `http://host:port`, while it lasts.

    `bytes` is what came back so far: bodies, and some hundred bytes of headers for each request.
    """

    def __init__(self, upstream: str) -> None:
        parts = urlsplit(upstream)
        self._address = (parts.hostname or "", parts.port or 80)
        self._counting = threading.Lock()
        self.bytes = 0
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
            sender = threading.Thread(target=_pump, args=(client, upstream), daemon=True)
            sender.start()
            with contextlib.suppress(OSError):
                while data := upstream.recv(CHUNK_BYTES):
                    with self._counting:
                        self.bytes += len(data)
                    client.sendall(data)
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
