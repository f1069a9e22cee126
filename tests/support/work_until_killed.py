"""Exports, ingests and writes a shard on demand, in a process that may be killed at any time.

The argument is JSON: `parameters` of Spark, the S3 `endpoint` and the `bucket`. Each line of the
input is an order, `{"do": …, "version": …}`, and each is answered by a line that begins with
`ANSWER`: an object that says what was found, or has an `error`.
"""

from __future__ import annotations

import json
import sys
import traceback
from typing import Any

from pyspark.sql import DataFrame

from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.export.job import copy_to_s3
from dbt.adapters.mzs3.shard import compact as shard_compact
from dbt.adapters.mzs3.shard.compact import compact_shard
from dbt.adapters.mzs3.shard.options import parse_compaction
from dbt.adapters.mzs3.shard.read.rows import ShardLocation, read_shard
from dbt.adapters.mzs3.shard.write.job import persist_shard
from dbt.adapters.mzs3.source.ingest import ingest
from dbt.adapters.mzs3.source.options import parse_definition
from dbt.adapters.mzs3.spark.session import isolated_session
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import parse_location

ANSWER = "answer: "
GROUPS = 600
PARTS = 4
# A sum's last digits depend on the order in which a shuffle hands out its blocks.
ROWS = f"""
select k, %d as version, sum(x) as x
from (select id % {GROUPS} as k, hash(id) / 7D * pow(10D, id % 13) as x from range(0, 12000, 1, 4))
group by k
""".replace("%d", "{version}")


class Work:
    """All that is done in one process."""

    def __init__(self, parameters: dict[str, str], endpoint: str, bucket: str) -> None:
        self._spark = isolated_session(parameters)
        self._bucket = bucket
        self._connection = AwsConnection(
            endpoint=endpoint,
            addressing_style="path",
            access_key_id="testing",
            secret_access_key="testing",
        )
        self._connections = {"default": self._connection}
        self._shard = f"s3://{bucket}/shard"

    def export(self, version: int) -> dict[str, Any]:
        result = copy_to_s3(
            self._spark,
            ROWS.format(version=version),
            node="model.test.export",
            options={
                "location": f"s3://{self._bucket}/export",
                "parts": PARTS,
                "on_existing": "overwrite",
            },
            connections=self._connections,
            as_of=version,
        )
        return {"rows": result.rows}

    def shard(self, version: int) -> dict[str, Any]:
        result = persist_shard(
            self._spark,
            ROWS.format(version=version),
            node="model.test.shard",
            options={"location": self._shard, "parts": PARTS},
            connections=self._connections,
            as_of=version * 1000,
        )
        return {"rows": result.rows}

    def ingest(self, version: int) -> dict[str, Any]:
        definition = parse_definition(
            name="lake.numbers",
            schema="raw",
            identifier="numbers",
            external={"type": "s3_csv_source", "location": f"s3://{self._bucket}/raw/"},
            columns=[],
            connections=["default"],
        )
        return {"objects": ingest(self._spark, definition, self._connection).objects}

    def compact(self, version: int) -> dict[str, Any]:
        return {"old": len(self._compacted(version, {}).old)}

    def compact_later(self, version: int) -> dict[str, Any]:
        """As after a week, in which no run can still be under way."""
        shard_compact.LONGEST_UPLOAD_MS = 0
        return {"uploads": self._compacted(version, {"keep_hours": 0}).aborted.uploads}

    def look(self, version: int) -> dict[str, Any]:
        """What readers find in the shard and in the source's table."""
        rows = read_shard(self._spark, self._connection, parse_location(self._shard))
        numbers = self._spark.table("raw.numbers").groupBy("_mz_object").agg({"id": "count"})
        distinct = self._spark.table("raw.numbers").select("id").distinct().count()
        return {
            "shard": _by_version(rows),
            "objects": {row[0].rsplit("/", 1)[1]: row[1] for row in numbers.collect()},
            "ids": distinct,
        }

    def _compacted(self, version: int, arguments: dict[str, Any]) -> Any:
        shard = ShardLocation(self._connection, parse_location(self._shard))
        since = {"since": "latest"}
        return compact_shard(self._spark, shard, parse_compaction({**since, **arguments}))


def _by_version(rows: DataFrame) -> dict[str, list[int]]:
    """Rows and groups of each version."""
    found = rows.groupBy("version").agg({"*": "count", "k": "sum"}).collect()
    return {str(row[0]): [row["count(1)"], row["sum(k)"]] for row in found}


def main(parameters: dict[str, str], endpoint: str, bucket: str) -> None:
    work = Work(parameters, endpoint, bucket)
    print(ANSWER + json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = getattr(work, order["do"])(order["version"])
        except Mzs3Error as exc:
            answer = {"error": str(exc)}
        except Exception:
            answer = {"defect": traceback.format_exc()}
        print(ANSWER + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
