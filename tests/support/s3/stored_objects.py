"""One object in memory instead of S3, and reading it in a format."""

import io
from typing import Any

from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.formats.read.format import ObjectFormat
from dbt.adapters.mzs3.formats.read.object_error import HeaderProblem, ObjectError
from dbt.adapters.mzs3.formats.read.signatures import require_encoding
from dbt.adapters.mzs3.source.executor.stored_object import S3Object
from dbt.adapters.mzs3.store.location import S3Location
from support.s3.opened import bucket_of

ETAG = "e1"


class MemoryClient:
    """Answers GET as S3 does, of an object that never changes, and keeps what was asked for."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.spans: list[tuple[int, int]] = []

    def get_object(self, **request: Any) -> dict[str, Any]:
        assert request["IfMatch"] == f'"{ETAG}"'
        start, end = 0, len(self.data)
        if "Range" in request:
            first, _, last = request["Range"].removeprefix("bytes=").partition("-")
            start, end = int(first), int(last) + 1 if last else end
        self.spans.append((start, end))
        part = self.data[start:end]
        answer: dict[str, Any] = {
            "Body": io.BytesIO(part),
            "ETag": f'"{ETAG}"',
            "ContentLength": len(part),
            "ResponseMetadata": {"HTTPStatusCode": 206 if "Range" in request else 200},
        }
        if "Range" in request:
            answer["ContentRange"] = f"bytes {start}-{end - 1}/{len(self.data)}"
        return answer


def stored(data: bytes, client: Any = None) -> S3Object:
    return S3Object(
        bucket_of(client or MemoryClient(data), "acme-raw"),
        S3Location("acme-raw", ""),
        "orders/1",
        ETAG,
        len(data),
    )


def read_all(
    form: ObjectFormat,
    data: bytes,
    columns: dict[str, str] | None = None,
    header: tuple[str, ...] | None = None,
    client: Any = None,
) -> list[tuple]:
    """The rows; without columns, all fields in types of their own."""
    if columns is None:
        fields = form.fields(stored(data)) or ()
        columns = {f.name: "string" if f.own == "void" else str(f.own) for f in fields}
    made = tuple(Column(name, data_type) for name, data_type in columns.items())
    rows: list[tuple] = []
    decoder = form.decoder(header or tuple(columns), made)
    for records in decoder(stored(data, client)):
        assert records.count == records.batch.num_rows
        assert records.batch.schema.names == list(columns)
        rows += zip(*(column.to_pylist() for column in records.batch.columns), strict=True)
    return rows


def problem_of(*how: Any, **more: Any) -> ObjectError:
    try:
        got = read_all(*how, **more)
    except ObjectError as problem:
        return problem
    raise AssertionError(f"read without a problem: {got!r}")


def is_no_utf_16(data: bytes) -> bool:
    """Whether an object is not taken for text in UTF-16, as lone NUL bytes can be."""
    try:
        require_encoding(data, None)
    except HeaderProblem:
        return False
    return True
