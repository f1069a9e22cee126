"""A mocked S3 with the bucket of one source."""

import boto3
import pytest
from moto import mock_aws
from support.source.fetched_objects import BUCKET


@pytest.fixture
def s3():
    with mock_aws():
        client = boto3.client(
            "s3",
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )
        client.create_bucket(Bucket=BUCKET)
        yield client
