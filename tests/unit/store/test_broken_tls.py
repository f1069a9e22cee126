"""A TLS record that is damaged on its way, in the middle of a body: what boto3 lets through."""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from support.s3.opened import prefix_of

from dbt.adapters.mzs3.store import reader
from dbt.adapters.mzs3.store.client import s3_client
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.failures import StoreError
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.store.reader import ObjectStream

DATA = bytes(range(256)) * 4096
# The header of a record of application data, and what no key has encrypted.
DAMAGED = b"\x17\x03\x03\x00\x40" + bytes(64)


def certificate(folder: Path) -> Path:
    """A new key, and the certificate of 127.0.0.1 that it has signed itself, in one file."""
    key, now = ec.generate_private_key(ec.SECP256R1()), dt.datetime.now(dt.timezone.utc)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "certificate.pem"
    path.write_bytes(private + signed.public_bytes(pem))
    return path


class DamagingS3:
    """Answers GET of DATA over TLS; the first `times` answers, which have that `status`, are
    damaged in their middle."""

    def __init__(self, certificate: Path) -> None:
        self.times = 1
        self.status = "200 OK"
        self.asked: list[str] = []
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"https://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # once it is closed
            while True:
                plain, _ = self._listening.accept()
                with contextlib.suppress(OSError), plain:
                    below = os.dup(plain.fileno())
                    try:
                        with self._context.wrap_socket(plain, server_side=True) as connection:
                            self._answer(connection, below)
                    finally:
                        os.close(below)

    def _answer(self, connection: ssl.SSLSocket, below: int) -> None:
        received = b""
        while not received.endswith(b"\r\n\r\n"):
            if not (more := connection.recv(65536)):
                return  # the client has given up
            received += more
        request = received.decode()
        sent = [line.split("=")[1] for line in request.split("\r\n") if line.startswith("Range")]
        self.asked.append(sent[0] if sent else "")
        start = int(sent[0].split("-")[0]) if sent else 0
        part = DATA[start:]
        span = f"Content-Range: bytes {start}-{len(DATA) - 1}/{len(DATA)}\r\n" if sent else ""
        status = self.status if self.times else "200 OK"
        head = f'HTTP/1.1 {status}\r\nContent-Length: {len(part)}\r\nETag: "one"\r\n{span}\r\n'
        if not self.times:
            connection.sendall(head.encode() + part)
            return
        self.times -= 1
        connection.sendall(head.encode() + part[: len(part) // 2])
        os.write(below, DAMAGED)


@pytest.fixture
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DamagingS3]:
    path = certificate(tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(path))
    monkeypatch.setattr(reader, "FIRST_PAUSE_S", 0.0)
    with contextlib.closing(DamagingS3(path)) as server:
        yield server


def prefix(s3: DamagingS3) -> Prefix:
    connection = AwsConnection(
        endpoint=s3.endpoint,
        addressing_style="path",
        access_key_id="testing",
        secret_access_key="testing",
    )
    return prefix_of(s3_client(connection, max_attempts=1), S3Location("b", ""))


def test_a_stream_is_resumed_at_the_byte_reached(s3: DamagingS3) -> None:
    stream = ObjectStream(prefix(s3).store, "k")
    assert b"".join(iter(lambda: stream.read(65536), b"")) == DATA
    first, second = s3.asked
    assert not first
    assert 0 < int(second.split("-")[0]) <= len(DATA) // 2


def test_a_refusal_that_can_not_be_read_is_as_good_as_none(s3: DamagingS3) -> None:
    s3.status = "503 Slow Down"
    assert ObjectStream(prefix(s3).store, "k").rest() == DATA


def test_what_is_read_by_boto3_is_a_failure_of_its_own(s3: DamagingS3) -> None:
    with pytest.raises(StoreError, match="bad record mac"):
        prefix(s3).find("k")


def test_a_small_object_is_read_on_too(s3: DamagingS3) -> None:
    assert prefix(s3).read("k") == DATA
    assert len(s3.asked) == 2
