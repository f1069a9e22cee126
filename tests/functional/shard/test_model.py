"""persist_shard as its users meet it: models, the log, run_results.json, errors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from support.s3.opened import state_of

from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.shard.read.rows import read_shard
from dbt.adapters.mzs3.store.client import s3_client
from dbt.adapters.mzs3.store.location import parse_location

pytestmark = pytest.mark.spark

CONFIG = "{{ config(materialized='persist_shard', location='s3://shard-model/orders', parts=1) }}"
ORDERS = f"{CONFIG} select id, concat('order ', id) as name from range(5)"
FEWER = f"{CONFIG} select id, concat('order ', id) as name, 1 as added from range(1, 5)"
WRONG = "{{ config(materialized='persist_shard', encodng='dual', mode='x') }} select 1 as id"

PYTHON = """
def model(dbt, session):
    dbt.config(materialized='persist_shard', location='s3://shard-model/counted',
               column_types={'id': 'uint8'})
    return session.range(dbt.config.get('meta', {}).get('rows', 3))
"""
OTHERS = ["wrong", "counted", "reader", "few", "early", "too_early"]
SOURCES = """
sources:
  - name: lake
    schema: shard_lake
    tables:
      - name: orders_now
        external: {type: persist_shard, location: 's3://shard-model/orders', validate: true}
        columns: [{name: name}]
      - name: orders_few
        external:
          type: persist_shard
          location: 's3://shard-model/orders'
          where: id > 2 and added = 1
        columns: [{name: name}]
      - name: orders_later
        external: {type: persist_shard, location: 's3://shard-model/later'}
        columns: [{name: id, data_type: bigint}, {name: tags, data_type: array<string>}]
      - name: untyped_later
        external: {type: persist_shard, location: 's3://shard-model/later'}
        columns: [{name: id, data_type: bigint}, {name: tags}]
unit_tests:
  - name: reads_rows
    model: reader
    given:
      - input: source('lake', 'orders_now')
        rows: [{name: a}, {name: b}]
    expect:
      rows: [{name: a}, {name: b}]
"""


class TestShardModel:
    @pytest.fixture(scope="class", autouse=True)
    def the_bucket(self, s3: Any) -> None:
        s3.create_bucket(Bucket="shard-model")

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "orders.sql": ORDERS,
            "wrong.sql": WRONG,
            "counted.py": PYTHON,
            "sources.yml": SOURCES,
            "reader.sql": "select * from {{ source('lake', 'orders_now') }}",
            "few.sql": "select * from {{ source('lake', 'orders_few') }}",
            "early.sql": "select id, tags from {{ source('lake', 'orders_later') }}",
            "too_early.sql": "select id, tags from {{ source('lake', 'untyped_later') }}",
            "downstream.sql": "select count(*) as n from {{ ref('orders') }}",
        }

    def test_runs_tell_how_much_changed(
        self, project: Any, spark: Any, connection: Any, s3: Any
    ) -> None:
        run_dbt(["run", "--empty", "--select", "orders"])
        assert s3.list_objects_v2(Bucket="shard-model").get("Contents", []) == []
        _, log = run_dbt_and_capture(["--no-use-colors", "run", "--exclude", *OTHERS])
        assert "OK created sql persist_shard model" in log
        assert "[COPY 5 in " in log
        [row] = project.run_sql("select n from {schema}.downstream", fetch="all")
        assert row[0] == 5
        [sampled] = run_dbt(["run", "--sample", "1 day", "--select", "orders"])
        assert sampled.message == "SKIP COPY (--sample)"
        write_file(FEWER, project.project_root, "models", "orders.sql")
        [result], log = run_dbt_and_capture(["run", "--full-refresh", "--select", "orders"])
        assert "orders: --full-refresh leaves the history of a shard as it is" in log
        assert "reset_shard --args '{location: s3://shard-model/orders, confirm: true}'" in log
        # A column more makes other rows of all that stay.
        assert result.adapter_response["rows_affected"] == 9
        location = parse_location("s3://shard-model/orders")
        first = result.adapter_response["as_of"] - 1
        before = read_shard(spark, connection, location, as_of=first)
        assert (before.columns, before.count()) == (["id", "name"], 5)
        now = read_shard(spark, connection, location)
        assert (now.columns, now.count()) == (["id", "name", "added"], 4)

    def test_a_unit_test_needs_no_table(self, project: Any) -> None:
        results = run_dbt(["test", "--select", "reader,test_type:unit"])
        assert [str(result.status) for result in results] == ["pass"]
        assert project.run_sql("select * from shard_lake.orders_now", fetch="all") == []

    def test_without_a_shard_an_empty_run_has_the_declared_columns(self, project: Any) -> None:
        run_dbt(["run", "--empty", "--select", "early"])
        assert project.run_sql("select id, size(tags) from {schema}.early", fetch="all") == []
        [result] = run_dbt(["run", "--empty", "--select", "too_early"], expect_pass=False)
        assert "no shard at s3://shard-model/later/ yet" in result.message
        assert "give a data_type to tags" in result.message
        [result] = run_dbt(["run", "--select", "early"], expect_pass=False)
        assert "run the model that writes it first" in result.message

    def test_a_source_reads_the_columns_it_names(self, project: Any) -> None:
        _, log = run_dbt_and_capture(["run", "--select", "reader"])
        # Of 5 rows of two columns, and 9 of three.
        assert (
            "lake.orders_now: 37 values were compared, in 2 of 2 batches, and are the same" in log
        )
        found = project.run_sql("select * from {schema}.reader order by 1", fetch="all")
        assert [tuple(row) for row in found] == [(f"order {n}",) for n in range(1, 5)]
        query = "select sum(compared), sum(differences) from shard_lake.mzs3_shard_validations"
        assert [tuple(row) for row in project.run_sql(query, fetch="all")] == [(37, 0)]

    def test_a_source_with_a_condition_has_the_rows_for_which_it_is_true(
        self, project: Any
    ) -> None:
        results, log = run_dbt_and_capture(["run", "--select", "few", "downstream"])
        downstream, few = sorted(results, key=lambda result: str(result.node.name))
        found = project.run_sql("select * from {schema}.few order by 1", fetch="all")
        assert [tuple(row) for row in found] == [("order 3",), ("order 4",)]
        assert re.search(r"lake.orders_few: fetched .* of 2 files: .*name \d+ B", log)
        [(source, read)] = few.adapter_response["bytes_read"].items()
        assert source == "lake.orders_few"
        assert set(read) == {"id", "name", "added", "(others)"}
        assert "bytes_read" not in downstream.adapter_response

    def test_describe_shard_prints_its_batches(self, project: Any) -> None:
        args = ["run-operation", "describe_shard", "--args", "{location: s3://shard-model/orders}"]
        _, log = run_dbt_and_capture(args)
        assert "s3://shard-model/orders/: 2 batches, 14 changes" in log
        assert "2: added int (integer)" in log
        assert re.search(r"bytes by column: .*name \d+ B", log)

    def test_compact_shard_makes_one_batch(self, project: Any) -> None:
        command = ["run-operation", "compact_shard", "--args"]
        where = "location: s3://shard-model/orders"
        _, log = run_dbt_and_capture([*command, f"{{{where}, since: latest}}"])
        assert "s3://shard-model/orders/: 2 batches (" in log
        assert ") became 1 (" in log
        run_dbt(["run", "--select", "reader"])
        found = project.run_sql("select count(*) from {schema}.reader", fetch="all")
        assert [tuple(row) for row in found] == [(4,)]
        wrong = f"{{{where}, since: soon, keep_hours: -1}}"
        _, log = run_dbt_and_capture([*command, wrong], expect_pass=False)
        assert "compact_shard has 2 problems in its configuration" in log

    def test_reset_shard_begins_the_shard_anew(
        self, project: Any, spark: Any, connection: Any, s3: Any
    ) -> None:
        command = ["run-operation", "reset_shard", "--args"]
        where = "location: s3://shard-model/orders"
        _, log = run_dbt_and_capture([*command, f"{{{where}}}"], expect_pass=False)
        assert "If that is what you want, say so" in log
        _, log = run_dbt_and_capture([*command, f"{{{where}, confirm: true}}"])
        assert "reset; the next run writes all rows of its model" in log
        [result] = run_dbt(["run", "--select", "reader"], expect_pass=False)
        assert "was reset, and no run has written it since" in result.message
        # Of another type, which is an error of any other run.
        anew = f"{CONFIG} select concat('x', id) as id, 'a' as name from range(3)"
        write_file(anew, project.project_root, "models", "orders.sql")
        [result] = run_dbt(["run", "--select", "orders"])
        assert result.adapter_response["rows_affected"] == 3
        location = parse_location("s3://shard-model/orders")
        found = read_shard(spark, connection, location)
        assert sorted(row["id"] for row in found.collect()) == ["x0", "x1", "x2"]
        with pytest.raises(ShardError, match="or was another shard before a reset"):
            first = result.adapter_response["as_of"]
            read_shard(spark, connection, location, as_of=first - 1)
        how = f"{{{where}, keep_hours: 0}}"
        run_dbt(["run-operation", "compact_shard", "--args", how])
        state = state_of(s3, location).existing().state
        there = s3.list_objects_v2(Bucket="shard-model", Prefix="orders/batches/")["Contents"]
        assert {one["Key"].removeprefix("orders/") for one in there} == state.file_names

    def test_every_wrong_option_is_named(self, project: Any) -> None:
        [result] = run_dbt(["run", "--select", "wrong"], expect_pass=False)
        for problem in (
            "model.test.wrong has 3 problems in its configuration",
            "encodng is not an option of persist_shard; did you mean encoding?",
            "mode must be one of diff, append, not 'x'",
            "location is required",
        ):
            assert problem in result.message

    def test_a_python_model_is_a_table_whose_rows_are_kept(
        self, project: Any, spark: Any, connection: Any
    ) -> None:
        changed = [run_dbt(["run", "--select", "counted"])[0].message for _ in range(2)]
        assert changed == ["COPY 3", "COPY 0"]
        location = parse_location("s3://shard-model/counted")
        state = state_of(s3_client(connection), location).existing().state
        assert [str(column.kind) for column in state.schema.columns] == ["uint8"]
        found = read_shard(spark, connection, location)
        kept = project.run_sql("select id from {schema}.counted", fetch="all")
        assert sorted(tuple(row) for row in kept) == sorted(map(tuple, found.collect()))

    def test_the_compiled_job_has_no_secret(self, project: Any, aws_connection: Any) -> None:
        [job] = Path(project.project_root, "target/run").rglob("orders.*")
        text = job.read_text()
        assert "from dbt.adapters.mzs3.api import persist_shard" in text
        assert aws_connection["secret_access_key"] not in text
