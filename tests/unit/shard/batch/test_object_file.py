"""A file in S3 is read by exact ranges, and is the one that the state names."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from support.s3.opened import bucket_of
from support.shard.files import rows_of, tagged, wanted, written

from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.shard.batch.read import TAIL_BYTES, open_file, read_batch
from dbt.adapters.mzs3.shard.batch.write import BatchLayout
from dbt.adapters.mzs3.shard.types import Type
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.store import ListedObject


def stored(client: Any, data: bytes) -> ListedObject:
    etag = client.put_object(Bucket="acme", Key="k", Body=data)["ETag"]
    return ListedObject("k", etag, len(data))


def test_any_range_is_what_is_there(client: Any) -> None:
    data = bytes(i % 251 for i in range(TAIL_BYTES * 2))
    file = open_file(bucket_of(client, "acme"), S3Location("acme", ""), stored(client, data))
    assert file.seek(0, 2) == len(data)
    assert file.read() == b""
    for start, size in [(0, 10), (TAIL_BYTES - 5, 10), (TAIL_BYTES + 1, 7), (len(data) - 3, 9)]:
        file.seek(start)
        assert file.read(size) == data[start : start + size]
        assert file.tell() == min(start + size, len(data))


def test_a_batch_is_read_from_s3(client: Any) -> None:
    kind = Type("integer")
    [data] = written(BatchLayout(tagged(kind)), [rows_of([kind], [[1, 2, None]])])
    file = open_file(bucket_of(client, "acme"), S3Location("acme", ""), stored(client, data))
    [batch] = read_batch(file, [wanted(0, kind)])
    assert batch.column("0").to_pylist() == [1, 2, None]


def test_another_object_under_the_key_is_an_error(client: Any) -> None:
    file = stored(client, b"one")
    stored(client, b"two")
    with pytest.raises(ExecutorError, match="s3://acme/k is not the file"):
        open_file(bucket_of(client, "acme"), S3Location("acme", ""), file).read()


def test_a_missing_object_is_an_error_through_pyarrow_too(client: Any) -> None:
    gone = ListedObject("gone", '"x"', 1000)
    with pytest.raises(ExecutorError, match="s3://acme/gone is not the file"):
        list(read_batch(open_file(bucket_of(client, "acme"), S3Location("acme", ""), gone), []))


def test_no_permission_may_mean_that_there_is_no_object() -> None:
    class Denying:
        def get_object(self, **_: Any) -> Any:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "No"}}, "GetObject")

    client: Any = Denying()
    with pytest.raises(ExecutorError, match=r"or there is no such object, .* s3:ListBucket") as c:
        open_file(
            bucket_of(client, "acme"), S3Location("acme", ""), ListedObject("k", '"x"', 1000)
        ).read()
    assert "reading s3://acme/k failed: AccessDenied: No (needs s3:GetObject; " in str(c.value)


def test_the_footer_comes_with_the_first_request(client: Any) -> None:
    kind = Type("bigint")
    [data] = written(
        BatchLayout(tagged(kind), "structured"),
        [rows_of([kind], [[n * n for n in range(50_000)]])],
    )
    assert len(data) > 2 * TAIL_BYTES
    asked: list[str] = []
    client.meta.events.register(
        "before-parameter-build.s3.GetObject", lambda params, **_: asked.append(params["Range"])
    )
    rows = list(
        read_batch(
            open_file(bucket_of(client, "acme"), S3Location("acme", ""), stored(client, data)),
            [wanted(0, kind)],
        )
    )
    assert sum(batch.num_rows for batch in rows) == 50_000
    assert asked[0] == f"bytes={len(data) - TAIL_BYTES}-{len(data) - 1}"
    spans = [tuple(map(int, span.removeprefix("bytes=").split("-"))) for span in asked]
    assert sum(last - first + 1 for first, last in spans) <= len(data)
