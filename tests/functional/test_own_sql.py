"""Our own SQL means the same in every session, whatever its settings of parser and types are.

Each feature runs in a session of that setting, and gives what it gives in a plain one.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.mzs3.export.history_table import TABLE
from dbt.adapters.mzs3.export.job import copy_to_s3
from dbt.adapters.mzs3.export.monitor import RunContext
from dbt.adapters.mzs3.export.progress import Snapshot
from dbt.adapters.mzs3.export.running_view import RunningCopy, view_text
from dbt.adapters.mzs3.shard.compact import compact_shard
from dbt.adapters.mzs3.shard.options import parse_compaction, parse_shard_source
from dbt.adapters.mzs3.shard.read.rows import ShardLocation
from dbt.adapters.mzs3.shard.read.table import SourceTable, write_source_table
from dbt.adapters.mzs3.shard.write.job import persist_shard
from dbt.adapters.mzs3.source.ingest import ingest
from dbt.adapters.mzs3.source.options import parse_definition
from dbt.adapters.mzs3.spark.session import isolated_session
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import parse_location

pytestmark = pytest.mark.spark

_ANSI, _PARSER, _LEGACY = "spark.sql.ansi.", "spark.sql.parser.", "spark.sql.legacy."
SETTINGS: dict[str, dict[str, str]] = {
    "not ANSI": {f"{_ANSI}enabled": "false"},
    "reserved": {f"{_ANSI}enabled": "true", f"{_ANSI}enforceReservedKeywords": "true"},
    "identifiers in double quotes": {
        f"{_ANSI}enabled": "true",
        f"{_ANSI}doubleQuotedIdentifiers": "true",
    },
    "backslashes are letters": {f"{_PARSER}escapedStringLiterals": "true"},
    "names are patterns": {f"{_PARSER}quotedRegexColumnNames": "true"},
    "case counts": {"spark.sql.caseSensitive": "true"},
    "strict": {"spark.sql.storeAssignmentPolicy": "STRICT"},
    "lenient": {f"{_ANSI}enabled": "false", "spark.sql.storeAssignmentPolicy": "LEGACY"},
    "timestamps without a zone": {"spark.sql.timestampType": "TIMESTAMP_NTZ"},
    "an odd zone": {"spark.sql.session.timeZone": "Asia/Kathmandu"},
    "substitution": {"spark.sql.variable.substitute": "true"},
    "no aliases beside": {"spark.sql.lateralColumnAlias.enableImplicitResolution": "false"},
    "no ordinals": {"spark.sql.groupByOrdinal": "false", "spark.sql.orderByOrdinal": "false"},
    "decimals are exact": {"spark.sql.decimalOperations.allowPrecisionLoss": "false"},
    "dynamic partitions": {"spark.sql.sources.partitionOverwriteMode": "dynamic"},
    "large Arrow": {"spark.sql.execution.arrow.useLargeVarTypes": "true"},
    "legacy": {
        f"{_LEGACY}timeParserPolicy": "LEGACY",
        f"{_LEGACY}castComplexTypesToString.enabled": "true",
        f"{_LEGACY}interval.enabled": "true",
        f"{_LEGACY}exponentLiteralAsDecimal.enabled": "true",
        f"{_LEGACY}sizeOfNull": "true",
        f"{_LEGACY}charVarcharAsString": "true",
        f"{_LEGACY}allowNegativeScaleOfDecimal": "true",
        f"{_LEGACY}consecutiveStringLiterals.enabled": "true",
        f"{_LEGACY}useCurrentConfigsForView": "true",
    },
}
# Those that contradict others; `test_all_settings_at_once` has the rest.
ALONE = ("not ANSI", "lenient")
# Of the names, each is a setting's own problem.
INNER = T.StructType(
    [
        T.StructField("it's", T.IntegerType()),
        T.StructField("b\\n", T.DoubleType()),
        T.StructField("select", T.MapType(T.StringType(), T.IntegerType())),
        T.StructField('q"', T.StringType()),
        T.StructField("a.b`c'\n", T.MapType(T.DoubleType(), T.StringType())),
        T.StructField("", T.FloatType()),
        T.StructField("${spark.app.name}", T.StringType("UTF8_LCASE")),
    ]
)
SCHEMA = T.StructType(
    [
        T.StructField("id", T.LongType()),
        T.StructField("it's", INNER),
        T.StructField("list", T.ArrayType(INNER)),
        T.StructField("from", T.TimestampType()),
        T.StructField("local", T.TimestampNTZType()),
        T.StructField("day", T.DateType()),
        T.StructField("number", T.DecimalType(12, 2)),
        T.StructField("g\nh", T.StringType()),
        T.StructField("k", T.StringType()),
        T.StructField("pause", T.DayTimeIntervalType()),
        T.StructField("map", T.MapType(T.StringType(), INNER)),
        T.StructField("nothing", T.NullType()),
        T.StructField("any case", T.StringType("UNICODE_CI")),
    ]
)
OF_SHARDS = SCHEMA.fieldNames()[:-3]
CSV = b"id,it's,from,order,d\\x\n1,a'b,2024-01-01 10:00:00+00,1.5,2024-02-03\n2,\\,,,\nx,,,,\n"
CSV_TYPES = ("bigint", "string", "timestamp", "decimal(10,2)", "date")
ENDED = RunningCopy(
    "r", "it's", "s3://b/it's\\/", 0, 1, Snapshot("writing", 1, 2, 3, 4, 5.5, 6, 7), "i"
)


def values(number: int) -> tuple[Any, ...]:
    inner = (number, number / 7, {"z": 1, "a": number}, "x'\\", {0.0: "p", 1.5: "q"}, -0.0, "É")
    moment = dt.datetime(2024, 1, 1, 10 + number)
    return (
        number,
        inner,
        [inner, None],
        moment.replace(tzinfo=dt.timezone.utc),
        moment,
        moment.date(),
        Decimal(number) / 4,
        f"t'\\\n{number}",
        ["a'b", "c\\d", None][number % 3],
        dt.timedelta(days=number, hours=3),
        {"k": inner},
        None,
        "Aé'",
    )


class Features:
    """Each feature in a session with these settings, with a bucket and a schema of its own."""

    def __init__(
        self, spark: Any, connection: AwsConnection, s3: Any, name: str, settings: dict[str, str]
    ) -> None:
        self.spark, self.connection, self.s3, self.name = spark, connection, s3, name
        for key, value in settings.items():
            spark.conf.set(key, value)
        s3.create_bucket(Bucket=name)
        self.schema = name.replace("-", "_")
        spark.sql(f"create schema `{self.schema}`")
        frame = spark.createDataFrame([values(number) for number in range(7)], SCHEMA)
        frame.select(*[F.col(f"`{name}`") for name in OF_SHARDS]).createOrReplaceTempView("a_few")
        parsed = F.parse_json(F.lit('{"a": [1, "x"]}'))
        interval = F.make_interval(*map(F.lit, (1, 2, 3, 4, 5, 6, 7.5)))
        everything = frame.withColumn("json", parsed).withColumn("while", interval)
        everything.createOrReplaceTempView("everything")

    def export(self, query: str, files: int = 2, **options: Any) -> list[str]:
        folder = f"it's/{len(self.s3.list_objects_v2(Bucket=self.name).get('Contents', []))}"
        copy_to_s3(
            self.spark,
            query,
            node="model.test.it's",
            options={"location": f"s3://{self.name}/{folder}", "parts": 2, **options},
            connections={"default": self.connection},
            as_of=1700000000000,
            context=RunContext(schema=self.schema, identifier="it's", invocation_id="i"),
        )
        found = self.s3.get_object(Bucket=self.name, Key=f"{folder}/_manifest.json")["Body"]
        hashes = [entry["meta"]["sha256"] for entry in json.load(found)["entries"]]
        assert len(hashes) == files
        return hashes

    def exports(self) -> list[Any]:
        written = [
            self.export("select * from everything"),
            self.export("select * from everything", files=7, partition_by=["k", "from"]),
            self.export("select * from everything", format="parquet"),
            self.export("select id, day, number, k from everything"),
        ]
        running = self.spark.sql(view_text([ENDED])).select("model", "location", "parts").collect()
        history = self.spark.table(f"{self.schema}.{TABLE}").select("model", "status", "rows")
        return [written, running, sorted(map(tuple, history.collect()))]

    def source(self) -> list[Any]:
        named = zip(CSV.split(b"\n")[0].decode().split(","), CSV_TYPES, strict=True)
        definition = parse_definition(
            name="lake.orders",
            schema=self.schema,
            identifier="orders",
            external={
                "type": "s3_csv_source",
                "location": f"s3://{self.name}/in/",
                "on_bad_row": "reject",
                "on_overwrite": "replace",
            },
            columns=[{"name": name, "data_type": kind} for name, kind in named],
            connections=["default"],
        )
        for key in ("in/1'\\.csv", "in/2.csv", "in/2.csv"):
            self.s3.put_object(Bucket=self.name, Key=key, Body=CSV if key < "in/2" else CSV[:-7])
            ingest(self.spark, definition, self.connection)
        seen = []
        for suffix in ("", "__objects", "__rejects"):
            rows = self.spark.table(f"{self.schema}.orders{suffix}")
            ends = ("_at", "epoch", "modified", "object")  # which name a moment, or the bucket
            unlike = [name for name in rows.columns if name.endswith(ends)]
            seen.append(sorted(map(str, rows.drop(*unlike).collect())))
        return [len(rows) for rows in seen] + seen[:1]

    def shard(self) -> list[Any]:
        location = f"s3://{self.name}/shard"
        write = partial(
            persist_shard,
            self.spark,
            node="model.test.it's",
            connections={"default": self.connection},
        )
        defaults = {"from": "timestamp_ltz'2024-01-01 00:00:00Z'"}
        options = {"location": location, "parts": 2}
        first = write("select * except (`from`) from a_few", options=options, as_of=1)
        options |= {"column_defaults": defaults}
        second = write("select * from a_few where id > 2", options=options, as_of=2)
        third = write("select * from a_few where id > 2", options=options, as_of=3)
        place = ShardLocation(self.connection, parse_location(location))
        compact_shard(self.spark, place, parse_compaction({"since": "latest"}))
        external = {"type": "persist_shard", "location": location, "validate": True}
        external["where"] = "id > 3 and day = date'2024-01-01' and k is not null"
        source = parse_shard_source("history.then", external, [], ["default"])
        write_source_table(
            self.spark, SourceTable(source, self.connection, self.schema, "earlier")
        )
        rows = self.spark.table(f"{self.schema}.earlier")
        read = sorted(map(str, rows.collect()))
        return [(first.rows, second.rows, third.rows), rows.schema.simpleString(), read]


@pytest.fixture(scope="module")
def run(
    spark_parameters: dict[str, str], aws_connection: dict[str, str], s3: Any
) -> Callable[[str, dict[str, str]], list[Any]]:
    def with_settings(name: str, settings: dict[str, str]) -> list[Any]:
        spark = isolated_session(spark_parameters)
        connection = AwsConnection(**aws_connection)
        features = Features(
            spark, connection, s3, f"own-sql-{name.replace(' ', '-').lower()}", settings
        )
        told = [features.exports(), features.source(), features.shard()]
        assert {key: spark.conf.get(key) for key in settings} == settings
        return [*told[0], *told[1], *told[2]]

    return with_settings


@pytest.fixture(scope="module")
def plain(run: Callable[..., list[Any]]) -> list[Any]:
    return run("plain", {})


@pytest.mark.slow
def test_all_settings_at_once(run: Callable[..., list[Any]], plain: list[Any]) -> None:
    every: dict[str, str] = {}
    for name, settings in SETTINGS.items():
        every |= {} if name in ALONE else settings
    assert run("all", every) == plain


@pytest.mark.long
@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting(run: Callable[..., list[Any]], plain: list[Any], name: str) -> None:
    assert run(name, SETTINGS[name]) == plain
