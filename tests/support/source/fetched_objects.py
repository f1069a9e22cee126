"""Objects of one source in a mocked S3, and what fetching them gives."""

import pyarrow as pa
import pytest

from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.read import text
from dbt.adapters.mzs3.formats.read.chunks import BLOCK_BYTES
from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.formats.read.csv import CsvFormat
from dbt.adapters.mzs3.formats.read.format import Reading
from dbt.adapters.mzs3.source.executor.fetch import FetchSpec, fetch_objects, format_of
from dbt.adapters.mzs3.source.executor.listing import list_objects
from dbt.adapters.mzs3.source.executor.stored_object import S3Object, read_fields
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location
from support.s3.opened import bucket_of
from support.source.fields import DIALECT

CONNECTION = AwsConnection(
    region="us-east-1", access_key_id="testing", secret_access_key="testing"
)

BUCKET = "acme-raw"
LOCATION = S3Location(BUCKET, "orders/")
HEADER = ("id", "amount")
COLUMNS = (Column("id", "bigint"), Column("amount", "string"))
EVERYTHING = pa.RecordBatch.from_pydict({"after": [None], "last": [None]})


def spec(**changes):
    known = {
        "connection": CONNECTION,
        "location": LOCATION,
        "source": "lake.orders",
        "header": HEADER,
        "columns": COLUMNS,
        "dialect": DIALECT,
        "compression": "by_suffix",
    }
    return FetchSpec(**{**known, **changes})


def put(s3, name, data):
    s3.put_object(Bucket=BUCKET, Key=f"orders/{name}", Body=data)


def listed(pattern="**"):
    return list(list_objects(CONNECTION, LOCATION, pattern)(iter([EVERYTHING])))


def fetching(of):
    """What a task does with listed objects, by the spec `of` them."""
    return fetch_objects(of, format_of(of))


def written(block_bytes=BLOCK_BYTES, **changes):
    """Every row that is written, as a dictionary, of objects read in blocks of that size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "BLOCK_BYTES", block_bytes)
        batches = fetching(spec(**changes))(iter(listed()))
        return [row for batch in batches for row in batch.to_pylist()]


def fetch(**changes):
    """The rows of all objects, without the object's name and time."""
    return [
        (*(row[c.name] for c in changes.get("columns", COLUMNS)), row["_mz_record"])
        for row in written(**changes)
    ]


def fetched(s3, data, name="1.csv", **changes):
    put(s3, name, data)
    return fetch(**changes)


def header_of(s3, name, **reading):
    """The names in an object's header, as a source's definition takes them."""
    form = CsvFormat("by_suffix", Reading(**reading), DIALECT)
    key = f"orders/{name}"
    head = s3.head_object(Bucket=BUCKET, Key=key)
    etag, size = head["ETag"].strip('"'), head["ContentLength"]
    fields = read_fields(
        form, S3Object(bucket_of(s3, BUCKET), LOCATION, key, etag, size), "lake.orders"
    )
    return None if fields is None else tuple(field.name for field in fields)


def failure(s3, data, name="2.csv", **changes):
    put(s3, name, data)
    with pytest.raises(ExecutorError) as raised:
        fetch(**changes)
    return raised.value.message
