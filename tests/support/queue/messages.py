"""Messages as S3, SNS and EventBridge send them."""

import json
from urllib.parse import quote_plus


def record(key, name="ObjectCreated:Put", *, bucket="acme-raw", sequencer=None, **changes):
    found = {
        "key": quote_plus(key, safe="/"),
        "size": 5,
        "eTag": "b1946ac92492d2347c6235b4d2611184",
    }
    if sequencer is not None:
        found["sequencer"] = sequencer
    made = {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "eventTime": "2026-01-02T03:04:05.678Z",
        "eventName": name,
        "s3": {"s3SchemaVersion": "1.0", "bucket": {"name": bucket}, "object": found},
    }
    return {**made, **changes}


def message(*records):
    return json.dumps({"Records": records})


def wrapped(body):
    """As SNS wraps it, unless raw delivery is on."""
    return json.dumps(
        {"Type": "Notification", "TopicArn": "arn:aws:sns:x", "Subject": "S3", "Message": body}
    )


def bridged(key, detail_type="Object Created", *, bucket="acme-raw", sequencer="617f08"):
    """As EventBridge sends it: the key is not encoded."""
    found = {"key": key, "size": 5, "etag": "b194", "sequencer": sequencer}
    return json.dumps(
        {
            "version": "0",
            "source": "aws.s3",
            "detail-type": detail_type,
            "time": "2026-01-02T03:04:05Z",
            "detail": {"version": "0", "bucket": {"name": bucket}, "object": found},
        }
    )


def probe(bucket="acme-raw"):
    return json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": bucket})
