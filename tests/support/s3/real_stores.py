"""S3 servers that people run, in the place of moto's: MZS3_STORE names the one that tests use.

`make test-stores` builds their programs into .stores/.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ACCESS_KEY_ID = "testing"
SECRET_ACCESS_KEY = "testing-testing"
STORE = os.environ.get("MZS3_STORE")
_PROGRAMS = Path(__file__).parents[3] / ".stores"
_START_TIMEOUT_S = 60
_ENVIRONMENT = {
    "MINIO_ROOT_USER": ACCESS_KEY_ID,
    "MINIO_ROOT_PASSWORD": SECRET_ACCESS_KEY,
    "MINIO_BROWSER": "off",
    "MINIO_CI_CD": "1",  # it takes a folder that is on the disk of the system
    "MINIO_KMS_SECRET_KEY": "exports:" + "A" * 43 + "=",  # else it has no aws:kms
    "ROOT_ACCESS_KEY": ACCESS_KEY_ID,
    "ROOT_SECRET_KEY": SECRET_ACCESS_KEY,
}


def keys_in(s3: Any, bucket: str) -> list[str]:
    """The keys of a bucket, without closed claims."""

    def read(key: str) -> bytes:
        body: bytes = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        return body

    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    keys = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
    return [key for key in keys if not is_closed(read, key)]


def objects_in(s3: Any, bucket: str) -> dict[str, bytes]:
    """The objects of a bucket by key, without closed claims."""
    keys = keys_in(s3, bucket)
    return {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


def is_closed(read: Callable[[str], bytes | None], key: str) -> bool:
    """Whether it is a claim that stays, closed, where a real store does not compare it first."""
    if STORE is None or not key.endswith("/_committing.json"):
        return False
    return b'"state": "closed"' in (read(key) or b"")


@contextlib.contextmanager
def running(store: str, folder: Path) -> Iterator[str]:
    """The URL of an empty `minio` or `versitygw` that keeps its objects below the folder."""
    objects = folder / "objects"
    objects.mkdir()
    address = f"127.0.0.1:{_free_port()}"
    arguments = {
        "minio": ["server", "--quiet", "--address", address, str(objects)],
        "versitygw": ["--quiet", "--port", address, "posix", str(objects)],
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(_PROGRAMS / store), *arguments[store]],
            env={**os.environ, **_ENVIRONMENT},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait_until_it_answers(process, address, folder / "log")
            yield f"http://{address}"
        finally:
            process.terminate()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_it_answers(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    host, _, port = address.partition(":")
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"{process.args!r} did not start to serve: {log.read_text()}")
