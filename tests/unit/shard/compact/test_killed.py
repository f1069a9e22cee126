"""Uploads of killed runs go, and no other ones."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from botocore.exceptions import ClientError
from support.s3.opened import prefix_of

from dbt.adapters.mzs3.shard.compact import abort_killed
from dbt.adapters.mzs3.store.location import parse_location
from dbt.adapters.mzs3.store.prefix import Prefix

HOUR_MS = 3_600_000
KEYS = ("orders/batches/5-a/part-0000-0001.parquet", "orders/x", "others/batches/5-a/part")


@pytest.fixture
def prefix(client: Any) -> Prefix:
    for key in KEYS:
        client.create_multipart_upload(Bucket="acme", Key=key)
    now = dt.datetime.now(dt.timezone.utc)

    def begun_now(parsed: dict[str, Any], **_: Any) -> None:
        for upload in parsed.get("Uploads", []):
            upload["Initiated"] = now  # moto's are of 2010

    client.meta.events.register("after-call.s3.ListMultipartUploads", begun_now)
    return prefix_of(client, parse_location("s3://acme/orders"))


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is 8 days later."""
    now = Prefix.now
    monkeypatch.setattr(Prefix, "now", lambda prefix: now(prefix) + 192 * HOUR_MS)


def left(prefix: Prefix) -> list[str]:
    found = prefix.store._client.list_multipart_uploads(Bucket="acme").get("Uploads", [])
    return [upload["Key"] for upload in found]


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("hours", [0, 190])
def test_old_uploads_of_batches_are_aborted(prefix: Prefix, hours: int) -> None:
    assert abort_killed(prefix, hours * HOUR_MS) == (1, [])
    assert left(prefix) == list(KEYS[1:])


@pytest.mark.usefixtures("later")
def test_uploads_are_kept_as_long_as_is_asked_for(prefix: Prefix) -> None:
    assert abort_killed(prefix, 194 * HOUR_MS) == (0, [])


@pytest.mark.parametrize("hours", [0, 1, 160])
def test_a_run_that_may_still_write_keeps_its_uploads(
    prefix: Prefix, hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = Prefix.now
    monkeypatch.setattr(Prefix, "now", lambda prefix: now(prefix) + hours * HOUR_MS)
    assert abort_killed(prefix, 0) == (0, [])
    assert left(prefix) == list(KEYS)


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("operation", ["list_multipart_uploads", "abort_multipart_upload"])
def test_what_fails_is_told(
    prefix: Prefix, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(self: Any, name: str, how: Any) -> Any:
        if name.lower() == operation.replace("_", ""):
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "No."}}, name)
        return call(self, name, how)

    call = type(prefix.store._client)._make_api_call  # type: ignore[attr-defined]
    monkeypatch.setattr(type(prefix.store._client), "_make_api_call", denied)
    aborted, [problem] = abort_killed(prefix, 0)
    assert aborted == 0
    assert "s3://acme/orders/" in problem
    assert "AccessDenied" in problem
