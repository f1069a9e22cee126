"""What a refusal of AWS tells the user."""

import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError
from botocore.parsers import ResponseParserError

from dbt.adapters.mzs3.store.boto_errors import as_store_errors, store_error
from dbt.adapters.mzs3.store.failures import (
    MissingError,
    PermissionDeniedError,
    RoleError,
    StoreError,
    UnreadableError,
    describe,
)
from dbt.adapters.mzs3.store.s3 import S3Store


def refusal(code: str, message: str = "No.", operation: str = "ListObjectsV2") -> StoreError:
    return store_error(ClientError({"Error": {"Code": code, "Message": message}}, operation))


def test_a_denial_names_the_permission() -> None:
    denied = refusal("AccessDenied")
    assert isinstance(denied, PermissionDeniedError)
    assert describe(denied, "listing s3://b/x/", "s3:ListBucket") == (
        "listing s3://b/x/ failed: AccessDenied: No. (needs s3:ListBucket)"
    )


def test_what_is_missing_is_no_question_of_permissions() -> None:
    missing = refusal("NoSuchBucket")
    assert isinstance(missing, MissingError)
    assert describe(missing, "listing s3://b/x/", "s3:ListBucket") == (
        "listing s3://b/x/ failed: NoSuchBucket: No; check the name of the bucket, and the "
        "endpoint and keys under aws_connections in the profile, or make the bucket: dbt-mzs3 "
        "makes none"
    )


def test_without_credentials_the_ways_to_give_them_are_named() -> None:
    text = describe(store_error(NoCredentialsError()), "listing s3://b/x/")
    assert "aws_connections in the profile" in text
    assert "boto3's own chain" in text


def test_an_endpoint_that_does_not_answer_is_named() -> None:
    down = store_error(EndpointConnectionError(endpoint_url="http://127.0.0.1:9/"))
    assert "http://127.0.0.1:9/" in describe(down, "listing s3://b/x/")
    assert not isinstance(down, PermissionDeniedError)


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
    assert says in describe(store_error(ClientError(answer, "ListObjectsV2")), "listing s3://b/x/")


def test_a_role_error_travels_with_its_text() -> None:
    failure = pickle.loads(pickle.dumps(RoleError("the role could not be assumed")))
    assert describe(failure, "listing") == "listing failed: the role could not be assumed"


def test_an_answer_that_can_not_be_read_and_of_which_nothing_is_said_is_told_of() -> None:
    assert (
        str(store_error(ResponseParserError())) == "the answer can't be read: ResponseParserError"
    )


@pytest.mark.parametrize(
    ("operation", "needs"),
    [
        ("CompleteMultipartUpload", "s3:PutObject; with If-Match also s3:GetObject"),
        ("ListParts", "s3:ListMultipartUploadParts"),
    ],
)
def test_what_a_commit_asks_has_its_permission(operation: str, needs: str) -> None:
    assert refusal("AccessDenied", operation=operation).permission == needs


@pytest.mark.parametrize("mistake", [TypeError, NameError, ImportError])
def test_a_mistake_of_the_code_is_no_failure_of_the_store(mistake: type[Exception]) -> None:
    with pytest.raises(mistake), as_store_errors():
        raise mistake("of the code")


@pytest.mark.parametrize(
    ("request_", "lacks"),
    [
        (lambda store: store.put("k", b"", {}), "ETag"),
        (lambda store: store.head("k"), "ETag"),
        (lambda store: store.tags("k"), "TagSet"),
        (lambda store: store.open_upload("k", {}), "UploadId"),
        (lambda store: store.put_part("k", "id", 1, b""), "ETag"),
        (lambda store: next(store.pages("", limit=1)), "Size"),
        (lambda store: store.parts("k", "id"), "Size"),
        (lambda store: list(store.uploads("")), "Initiated"),
    ],
)
def test_an_answer_that_lacks_something_is_one_that_can_not_be_read(
    request_: Callable[[S3Store], object], lacks: str
) -> None:
    page = {
        "Contents": [{"Key": "k"}],
        "Parts": [{"PartNumber": 1, "ETag": "e"}],
        "Uploads": [{"Key": "k", "UploadId": "id"}],
    }

    def answer(**_: Any) -> dict[str, Any]:
        return page

    client: Any = SimpleNamespace(
        **dict.fromkeys(
            (
                *("put_object", "head_object", "get_object_tagging", "create_multipart_upload"),
                *("upload_part", "list_objects_v2"),
            ),
            answer,
        ),
        get_paginator=lambda _: SimpleNamespace(paginate=lambda **_: iter([page])),
    )
    with pytest.raises(UnreadableError, match=f"^the answer has no {lacks}$"):
        request_(S3Store(client, "b"))
