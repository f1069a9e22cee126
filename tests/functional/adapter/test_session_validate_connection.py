"""`dbt run-operation validate_aws_connection` says what a connection may do on a prefix."""

import boto3
import pytest
from dbt.tests.util import run_dbt_and_capture
from support.s3.faulty import FaultyS3

BUCKET = "validated"


@pytest.fixture(scope="module")
def faulty(s3_endpoint, s3):
    s3.create_bucket(Bucket=BUCKET)
    with FaultyS3(s3_endpoint) as proxy:
        yield proxy


def validate(**args):
    given = ", ".join(f"{key}: {value}" for key, value in args.items())
    results, log = run_dbt_and_capture(
        ["run-operation", "validate_aws_connection", "--args", f"{{{given}}}"],
        expect_pass=None,
    )
    [result] = results.results
    return result.status == "success", log


def queue_of(connection):
    sqs = boto3.client(
        "sqs",
        endpoint_url=connection["endpoint"],
        region_name=connection["region"],
        aws_access_key_id=connection["access_key_id"],
        aws_secret_access_key=connection["secret_access_key"],
    )
    return sqs.create_queue(QueueName="validated-event")["QueueUrl"]


class TestValidate:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target, aws_connection, faulty):
        lake = {**aws_connection, "endpoint": faulty.endpoint}
        return {**dbt_profile_target, "aws_connections": {"lake": lake}}

    @pytest.fixture(autouse=True)
    def _no_faults(self, project, faulty):
        faulty.reset()

    def test_what_works_is_said_line_by_line_and_nothing_is_left(self, s3):
        ok, log = validate(name="lake", location=f"s3://{BUCKET}/x")

        assert ok
        assert "ok: list (s3:ListBucket)" in log
        assert log.count("ok: ") == 8
        assert "Contents" not in s3.list_objects_v2(Bucket=BUCKET)
        assert "Uploads" not in s3.list_multipart_uploads(Bucket=BUCKET)

    def test_a_name_alone_says_who_it_is(self, faulty):
        ok, log = validate(name="lake")

        assert ok
        assert f"aws lake: arn:aws:sts::123456789012:user/moto at {faulty.endpoint}" in log

    def test_what_every_export_needs_fails_it_and_all_denials_are_told(self, faulty):
        faulty.deny = lambda request: request.action in {"ListObjectsV2", "CreateMultipartUpload"}
        ok, log = validate(name="lake", location=f"s3://{BUCKET}/x")

        assert not ok
        assert f"exports to s3://{BUCKET}/x can't work:" in log
        _, error = log.split("can't work:")
        assert "DENIED: list (s3:ListBucket)" in error
        assert "DENIED: open an upload (s3:PutObject)" in error
        assert "ok: delete an object (s3:DeleteObject)" in log

    def test_what_a_plain_export_can_do_without_fails_nothing(self, faulty):
        faulty.deny = lambda request: request.action == "DeleteObject"
        ok, log = validate(name="lake", location=f"s3://{BUCKET}/x")

        assert ok
        assert "DENIED: delete an object (s3:DeleteObject)" in log
        assert "on_existing: overwrite" in log

    def test_a_queue_is_tried_alone_or_beside_a_prefix(self, aws_connection):
        url = queue_of(aws_connection)
        ok, log = validate(name="lake", queue=url)
        assert ok
        assert "ok: delete messages (sqs:DeleteMessage)" in log
        assert log.count("ok: ") == 3
        ok, log = validate(name="lake", queue=f"{url}s", location=f"s3://{BUCKET}/x")
        assert not ok
        assert "aws_connections.lake: receiving from the queue validated-events failed: " in log
        assert "Make the queue" in log

    @pytest.mark.parametrize(
        ("args", "says"),
        [
            ({"name": "lak", "location": "s3://b/x"}, "it has default, lake"),
            ({"name": "lake", "location": "b/x"}, "location must start with s3://"),
            ({"name": "lak"}, "it has default, lake"),
            ({"name": "lake", "queue": "a b"}, "queue is no name of a queue"),
            ({"name": "lake", "queue": "q.fifo"}, "queue is a FIFO queue"),
            ({"name": "lake", "location": "s3://no-such-bucket/x"}, "failed: NoSuchBucket"),
        ],
    )
    def test_what_can_not_be_checked_is_one_clear_error(self, args, says):
        ok, log = validate(**args)

        assert not ok
        assert says in log
        assert "Traceback" not in log
