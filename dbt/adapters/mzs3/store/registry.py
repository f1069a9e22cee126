"""The stores that there are, by the scheme of their locations: a line for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.s3 import open_bucket
from dbt.adapters.mzs3.store.store import Store

STORES: Mapping[str, Callable[[AwsConnection, str], Store]] = {
    "s3": open_bucket,
}
"""Each opens a bucket, and raises S3Error for a connection that it can't be opened with."""
