"""A bucket of CSV objects and one source over it, without dbt around them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import boto3
import pytest
from support.queue.announcing import Post

from dbt.adapters.mzs3.ledger.relations import SourceRelations
from dbt.adapters.mzs3.source.ingest import ingest
from dbt.adapters.mzs3.source.options import SourceDefinition, parse_definition
from dbt.adapters.mzs3.source.queue import inbox
from dbt.adapters.mzs3.source.report import IngestReport
from dbt.adapters.mzs3.source.tables import existing_relations
from dbt.adapters.mzs3.spark.job import Tell
from dbt.adapters.mzs3.spark.session import isolated_session
from dbt.adapters.mzs3.store.client import s3_client
from dbt.adapters.mzs3.store.connection import AwsConnection

_numbers = itertools.count(1)


@dataclass
class Lake:
    """A bucket of its own, and one source over it, `lake.orders`, in a schema of its own."""

    spark: Any
    connection: AwsConnection
    bucket: str
    schema: str
    external: dict[str, Any] = field(default_factory=dict)
    columns: list[dict[str, str]] = field(default_factory=list)

    @cached_property
    def client(self) -> Any:
        return s3_client(self.connection)

    @property
    def relations(self) -> SourceRelations:
        return SourceRelations(self.schema, "orders")

    @property
    def made(self) -> SourceRelations:
        """The relations with the tables that the source has now."""
        return existing_relations(self.spark, self.definition())

    def put(self, name: str, content: bytes | str) -> None:
        body = content.encode() if isinstance(content, str) else content
        self.client.put_object(Bucket=self.bucket, Key=f"orders/{name}", Body=body)

    def remove(self, name: str) -> None:
        self.client.delete_object(Bucket=self.bucket, Key=f"orders/{name}")

    def definition(self) -> SourceDefinition:
        location = f"s3://{self.bucket}/orders/"
        return parse_definition(
            name="lake.orders",
            schema=self.schema,
            identifier="orders",
            external={"type": "s3_csv_source", "location": location, **self.external},
            columns=self.columns,
            connections=["default"],
        )

    def ingest(
        self, on_step: Callable[[str], Any] = str, tell: Tell = str, **how: Any
    ) -> IngestReport:
        """A run, whose steps are told as its log for debugging has them, `begin plan`."""

        def told(line: tuple[str, str]) -> None:
            level, text = line
            tell(line)
            if level == "debug":
                on_step(text.partition(": ")[2])

        return ingest(self.spark, self.definition(), self.connection, tell=told, **how)

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        """Every row as (object's name, record, its values), in that order."""
        start = len(f"s3://{self.bucket}/orders/") + 1
        names = [f"substring(_mz_object, {start})", "_mz_record", *(f"`{c}`" for c in columns)]
        frame = self.spark.table(self.relations.source).selectExpr(*names)
        return sorted((tuple(row) for row in frame.collect()), key=lambda row: row[:2])

    def states(self) -> dict[str, tuple[Any, ...]]:
        """Of every object its state, rows and error."""
        start = len(f"s3://{self.bucket}/orders/")
        frame = self.spark.table(self.relations.objects)
        return {r["object"][start:]: (r["state"], r["rows"], r["error"]) for r in frame.collect()}


@pytest.fixture(scope="session")
def new_lake(
    spark_parameters: dict[str, str], aws_connection: dict[str, str]
) -> Callable[[], Lake]:
    def make() -> Lake:
        number = next(_numbers)
        connection = AwsConnection(**aws_connection)
        spark = isolated_session(spark_parameters)
        made = Lake(spark, connection, f"acme-raw-{number}", f"raw_{number}")
        made.client.create_bucket(Bucket=made.bucket)
        return made

    return make


@pytest.fixture
def lake(new_lake: Callable[[], Lake]) -> Lake:
    return new_lake()


@pytest.fixture
def post(lake: Lake, aws_connection: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Post:
    """The lake with a queue that its bucket tells of its objects, and that alone."""
    monkeypatch.setattr(inbox, "WAIT_S", 0)
    sqs = boto3.client(
        "sqs",
        endpoint_url=aws_connection["endpoint"],
        region_name=aws_connection["region"],
        aws_access_key_id=aws_connection["access_key_id"],
        aws_secret_access_key=aws_connection["secret_access_key"],
    )
    url = sqs.create_queue(QueueName=f"{lake.bucket}-events")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    lake.client.put_bucket_notification_configuration(
        Bucket=lake.bucket,
        NotificationConfiguration={
            "QueueConfigurations": [
                {"QueueArn": arn["QueueArn"], "Events": ["s3:ObjectCreated:*"]}
            ]
        },
    )
    made = Post(lake, sqs, url)
    made.lose()  # the test event
    lake.external = {"discover": [{"sqs_notifications": made.name}]}
    return made


@pytest.fixture(scope="session")
def make_bucket(s3: Any) -> Callable[[str, dict[str, str]], None]:
    """`make_bucket(name, objects)`: a bucket with these objects, by their keys."""

    def make(name: str, objects: dict[str, str]) -> None:
        s3.create_bucket(Bucket=name)
        for key, content in objects.items():
            s3.put_object(Bucket=name, Key=key, Body=content.encode())

    return make
