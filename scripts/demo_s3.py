"""The S3 server of the demo and of `make cluster`: moto's, with the demo's objects in it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import boto3
from demo_data import csv_objects
from moto.server import ThreadedMotoServer

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

RAW_BUCKET, EXPORTS_BUCKET = "acme-raw", "acme-exports"
ACCESS_KEY_ID, SECRET_ACCESS_KEY = "demo-key-id", "demo-secret-key"  # moto takes any


@contextmanager
def s3_server() -> Iterator[str]:
    """moto's S3 on a free port of the loopback interface, in a thread; yields its address."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def s3_client(endpoint: str) -> S3Client:
    """A client of the server at this address, whatever the caller's AWS settings are."""
    return boto3.Session().client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=ACCESS_KEY_ID,
        aws_secret_access_key=SECRET_ACCESS_KEY,
    )


def load(client: S3Client) -> dict[str, int]:
    """Create the buckets and upload every object; the number of rows of each table."""
    for bucket in (RAW_BUCKET, EXPORTS_BUCKET):
        client.create_bucket(Bucket=bucket)
    rows: dict[str, int] = {}
    for key, content in csv_objects():
        client.put_object(Bucket=RAW_BUCKET, Key=key, Body=content)
        count = content.count(b"\n") - 1  # no field of this data holds a newline
        table = key.partition("/")[0]
        rows[table] = rows.get(table, 0) + count
        print(f"  s3://{RAW_BUCKET}/{key:<22} {count:>7,} rows {len(content):>11,} bytes")
    return rows
