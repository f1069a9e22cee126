"""Clients sign as their connection says: with its keys, or as the role it assumes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from botocore.utils import parse_timestamp
from moto import mock_aws
from pyspark import cloudpickle

from dbt.adapters.mzs3.errors import S3Error
from dbt.adapters.mzs3.spark.job import ship_executor_code
from dbt.adapters.mzs3.store import client as client_module
from dbt.adapters.mzs3.store.client import aws_client, s3_client
from dbt.adapters.mzs3.store.connection import AwsConnection

ROLE = "arn:aws:iam::123456789012:role/copy"
KEYS: dict[str, Any] = {
    "access_key_id": "AKIABASE",
    "secret_access_key": "base",
    "session_token": "token",
}


@pytest.fixture(autouse=True)
def aws() -> Iterator[None]:
    with mock_aws():
        yield


def test_keys_region_endpoint_and_style_are_the_connections() -> None:
    connection = AwsConnection(
        region="eu-west-1", endpoint="http://127.0.0.1:9", addressing_style="path", **KEYS
    )
    client: Any = s3_client(connection)
    credentials = client._request_signer._credentials
    assert (credentials.access_key, credentials.secret_key, credentials.token) == (
        "AKIABASE",
        "base",
        "token",
    )
    assert client.meta.region_name == "eu-west-1"
    assert client.meta.endpoint_url == "http://127.0.0.1:9"
    assert client.meta.config.s3 == {"addressing_style": "path"}


def test_without_a_region_there_is_one() -> None:
    assert s3_client(AwsConnection(**KEYS)).meta.region_name == client_module.DEFAULT_REGION


def test_without_keys_the_chain_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIACHAIN")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "chain")
    client: Any = s3_client(AwsConnection())
    assert client._request_signer._credentials.access_key == "AKIACHAIN"


def without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")


@pytest.mark.parametrize("make", [s3_client, partial(aws_client, service="sts")])
@pytest.mark.parametrize(
    ("keys", "environment", "says"),
    [
        ({"assume_role_arn": ROLE}, {}, "give keys under aws_connections"),
        ({}, {"AWS_PROFILE": "nobody"}, r"profile \(nobody\) could not be found"),
        ({**KEYS, "region": "no region"}, {}, "no region"),
        ({**KEYS, "endpoint": "http://"}, {}, "(?<!ValueError: )Invalid endpoint"),
    ],
)
def test_what_makes_no_client_is_one_error_that_names_the_connection(
    monkeypatch: pytest.MonkeyPatch,
    make: Any,
    keys: dict[str, Any],
    environment: dict[str, str],
    says: str,
) -> None:
    without_credentials(monkeypatch)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(S3Error, match=rf"aws_connections\.lake: making a client failed.*{says}"):
        make(AwsConnection("lake", **keys))


# What an executor is: a Python with our packages, and without dbt.
EXECUTOR = """
import sys
sys.modules["dbt"] = None
import dataclasses, json
from pyspark import cloudpickle
make, signing, assuming = cloudpickle.load(sys.stdin.buffer)
client = make(signing)
keys = client._request_signer._credentials.get_frozen_credentials()
place = [client.meta.endpoint_url, client.meta.region_name]
print(json.dumps([keys, place, dataclasses.asdict(assuming)]))
"""


def test_a_connection_travels_to_executors() -> None:
    ship_executor_code()
    where = {"region": "eu-west-1", "endpoint": "http://lake:9", "addressing_style": "path"}
    signing = AwsConnection("lake", **where, **KEYS)
    role = {"assume_role_arn": ROLE, "external_id": "acme", "requester_pays": True}
    assuming = replace(signing, **role)
    sent = cloudpickle.dumps((s3_client, signing, assuming))
    command = [sys.executable, "-c", EXECUTOR]
    done = subprocess.run(command, input=sent, capture_output=True, check=True)
    keys, place, arrived = json.loads(done.stdout)
    assert AwsConnection(**arrived) == assuming
    assert (keys[:3], place) == (["AKIABASE", "base", "token"], ["http://lake:9", "eu-west-1"])


def test_clients_share_what_botocore_has_read_and_nothing_else() -> None:
    def loader(client: Any) -> Any:
        return client._loader

    first, second = (
        s3_client(AwsConnection(region="eu-west-1", access_key_id=key, secret_access_key="s"))
        for key in ("AKIA1", "AKIA2")
    )
    assert loader(first)._cache is loader(second)._cache
    assert loader(first).search_paths == loader(second).search_paths
    assert loader(first).search_paths is not loader(second).search_paths
    keys = [client._request_signer._credentials.access_key for client in (first, second)]
    assert keys == ["AKIA1", "AKIA2"]


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-02T03:04:05.678Z",
        "2026-01-02T03:04:05Z",
        "2026-01-02Z",
        "Fri, 02 Jan 2026 03:04:05 GMT",
        "not a day GMT",
        "2026-01-02T03:04:05+01:00",
        "1767322800",
        1767322800.5,
    ],
)
def test_timestamps_are_read_as_botocore_reads_them(text: Any) -> None:
    def read(parse: Any) -> Any:
        try:
            return parse(text)
        except ValueError:
            return ValueError

    found = read(client_module._instant)
    assert found == read(parse_timestamp)
    assert found is ValueError or found.utcoffset() is not None


def test_answers_have_timestamps_with_a_zone() -> None:
    client = s3_client(AwsConnection(region="us-east-1", **KEYS))
    client.create_bucket(Bucket="acme")
    client.put_object(Bucket="acme", Key="1.csv", Body=b"")
    (listed,) = client.list_objects_v2(Bucket="acme")["Contents"]
    head = client.head_object(Bucket="acme", Key="1.csv")["LastModified"]
    assert head == listed["LastModified"].replace(microsecond=0)
    assert listed["LastModified"].utcoffset() == timedelta(0)


@pytest.mark.parametrize("pays", [True, False])
def test_who_pays_is_said_and_signed_in_each_request(pays: bool) -> None:
    keys = {"access_key_id": "a", "secret_access_key": "b"}
    client = s3_client(AwsConnection(**keys, requester_pays=pays))

    def stop(request: Any, **_: Any) -> None:
        raise RuntimeError(f"{dict(request.headers)}")

    client.meta.events.register("before-send.s3", stop)
    with pytest.raises(RuntimeError) as sent:
        client.list_objects_v2(Bucket="b")
    assert ("'x-amz-request-payer': b'requester'" in str(sent.value)) is pays
    assert ("x-amz-request-payer" in str(sent.value).partition("SignedHeaders")[2]) is pays


@pytest.mark.parametrize(
    ("scheme", "checksum", "signed"),
    [
        ("https", {"ChecksumSHA256": "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="}, False),
        ("https", {}, True),
        ("http", {"ChecksumSHA256": "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="}, True),
    ],
)
def test_a_part_whose_sha256_is_sent_over_tls_is_hashed_for_it_alone(
    scheme: str, checksum: dict[str, str], signed: bool
) -> None:
    client = s3_client(AwsConnection(endpoint=f"{scheme}://127.0.0.1:1", **KEYS))
    sent: dict[str, str] = {}

    def stop(request: Any, **_: Any) -> None:
        sent.update((name.lower(), str(value)) for name, value in request.headers.items())
        raise RuntimeError

    client.meta.events.register("before-send.s3", stop)
    with pytest.raises(RuntimeError):
        client.upload_part(
            Bucket="b", Key="k", UploadId="u", PartNumber=1, Body=b"abc", **checksum
        )
    assert ("UNSIGNED-PAYLOAD" in sent["x-amz-content-sha256"]) is not signed
    assert ("x-amz-checksum-sha256" in sent["authorization"]) is bool(checksum)
    assert "x-amz-trailer" not in sent


@pytest.mark.parametrize(
    "endpoint",
    ["http://me:hush@127.0.0.1:1", "me:hush@127.0.0.1:1", "http://127.0.0.1:1/?token=hush"],
)
@pytest.mark.parametrize("role", [None, "arn:aws:iam::123456789012:role/copy"])
def test_a_login_in_an_endpoint_of_the_environment_is_refused_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, role: str | None, endpoint: str
) -> None:
    name = "AWS_ENDPOINT_URL_STS" if role else "AWS_ENDPOINT_URL"
    monkeypatch.setenv(name, endpoint)
    connection = AwsConnection(assume_role_arn=role, **KEYS)
    with pytest.raises(S3Error, match="not shown, as it may have a password") as caught:
        s3_client(connection, max_attempts=1).list_buckets()
    assert "hush" not in str(caught.value)
