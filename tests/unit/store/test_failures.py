"""What a refusal of AWS tells the user."""

import pickle
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError
from botocore.parsers import ResponseParserError

from dbt.adapters.mzs3.store.failures import (
    RoleError,
    describe,
    is_denied,
    is_missing,
    permission_of,
    reason_of,
)


def refusal(code: str, message: str = "No.") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "ListObjectsV2")


def test_a_denial_names_the_permission() -> None:
    denied = refusal("AccessDenied")
    assert is_denied(denied)
    assert describe(denied, "listing s3://b/x/", "s3:ListBucket") == (
        "listing s3://b/x/ failed: AccessDenied: No. (needs s3:ListBucket)"
    )


def test_what_is_missing_is_no_question_of_permissions() -> None:
    missing = refusal("NoSuchBucket")
    assert is_missing(missing)
    assert describe(missing, "listing s3://b/x/", "s3:ListBucket") == (
        "listing s3://b/x/ failed: NoSuchBucket: No; check the name of the bucket, and the "
        "endpoint and keys under aws_connections in the profile, or make the bucket: dbt-mzs3 "
        "makes none"
    )


def test_without_credentials_the_ways_to_give_them_are_named() -> None:
    text = describe(NoCredentialsError(), "listing s3://b/x/")
    assert "aws_connections in the profile" in text
    assert "boto3's own chain" in text


def test_an_endpoint_that_does_not_answer_is_named() -> None:
    down = EndpointConnectionError(endpoint_url="http://127.0.0.1:9/")
    assert "http://127.0.0.1:9/" in describe(down, "listing s3://b/x/")
    assert not is_denied(down)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"Error": {"Code": "PermanentRedirect", "Region": "eu-west-1"}}, "is in eu-west-1: set"),
        (
            {
                "Error": {"Code": "301"},
                "ResponseMetadata": {"HTTPHeaders": {"x-amz-bucket-region": "eu-west-2"}},
            },
            "is in eu-west-2: set",
        ),
        ({"Error": {"Code": "AuthorizationHeaderMalformed"}}, "is in another region: set region"),
    ],
)
def test_another_region_is_named_where_s3_names_it(answer: Any, says: str) -> None:
    assert says in describe(ClientError(answer, "ListObjectsV2"), "listing s3://b/x/")


def test_a_role_error_travels_with_its_text() -> None:
    failure = pickle.loads(pickle.dumps(RoleError(reason="the role could not be assumed")))
    assert describe(failure, "listing") == "listing failed: the role could not be assumed"


def test_an_answer_that_can_not_be_read_and_of_which_nothing_is_said_is_told_of() -> None:
    assert reason_of(ResponseParserError()) == "the answer can't be read: ResponseParserError"


@pytest.mark.parametrize(
    ("operation", "needs"),
    [
        ("CompleteMultipartUpload", "s3:PutObject; with If-Match also s3:GetObject"),
        ("ListParts", "s3:ListMultipartUploadParts"),
    ],
)
def test_what_a_commit_asks_has_its_permission(operation: str, needs: str) -> None:
    denied = ClientError({"Error": {"Code": "AccessDenied", "Message": "No."}}, operation)
    assert permission_of(denied) == needs
