"""A mocked S3 with one bucket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from dbt.adapters.mzs3.store import conditions


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A boto3 client of a mocked S3 that has the empty bucket `acme`."""
    monkeypatch.setattr(conditions, "_known", {})
    with mock_aws():
        client = boto3.client(
            "s3", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
        )
        client.create_bucket(Bucket="acme")
        yield client
