"""S3 servers that are fast enough to measure against, on the loopback interface."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from dbt.adapters.mzs3.store.connection import AwsConnection

START_TIMEOUT_S = 60
MINIO = Path(__file__).parents[1] / ".stores" / "minio"


@contextlib.contextmanager
def serve_s3(folder: Path, *, many_uploads: bool = False) -> Iterator[AwsConnection]:
    """The folders below `folder` as buckets of `rclone serve s3`, while the context lasts.

    Some hundred uploads may be open at a time; with `many_uploads` any number, in memory.
    """
    program = shutil.which("rclone", path=str(Path(sys.executable).parent))
    if program is None:
        raise SystemExit("rclone is not installed: pip install -e '.[benchmark]'")
    server = _connection()
    keys = f"{server.access_key_id},{server.secret_access_key}"
    command = [program, "serve", "s3", "--addr", _address(server), "--auth-key", keys, str(folder)]
    if many_uploads:
        command.append("--disable-multipart-streaming")
    with _running([*command, "--log-level", "CRITICAL"], server):
        yield server


@contextlib.contextmanager
def serve_minio(folder: Path) -> Iterator[AwsConnection]:
    """A MinIO that keeps its objects below the empty `folder`, while the context lasts.

    s3a writes to it, which it does not to rclone's server.
    """
    if not MINIO.exists():
        raise SystemExit("MinIO is not built: run `make bench-peers`, which needs Go")
    server = _connection()
    environment = {
        "MINIO_ROOT_USER": server.access_key_id or "",
        "MINIO_ROOT_PASSWORD": server.secret_access_key or "",
        "MINIO_BROWSER": "off",
        "MINIO_CI_CD": "1",  # it takes a folder that is on the disk of the system
    }
    command = [str(MINIO), "server", "--quiet", "--address", _address(server), str(folder)]
    with _running(command, server, environment):
        yield server


def _connection() -> AwsConnection:
    return AwsConnection(
        region="us-east-1",
        endpoint=f"http://127.0.0.1:{_free_port()}",
        addressing_style="path",
        access_key_id=secrets.token_hex(8),
        secret_access_key=secrets.token_hex(16),
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _address(server: AwsConnection) -> str:
    return (server.endpoint or "").removeprefix("http://")


@contextlib.contextmanager
def _running(
    command: list[str], server: AwsConnection, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    process = subprocess.Popen(command, env={**os.environ, **(environment or {})})
    try:
        _wait_until_it_answers(process, _address(server))
        yield
    finally:
        process.terminate()
        process.wait()


def _wait_until_it_answers(process: subprocess.Popen[bytes], address: str) -> None:
    host, _, port = address.partition(":")
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return
        time.sleep(0.05)
    raise SystemExit("the S3 server did not start to serve")
