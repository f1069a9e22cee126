"""Sources as dbt's users meet them: staged before the first node that needs them, once a run."""

from __future__ import annotations

import re

import pytest
from dbt.tests.util import relation_from_name, run_dbt, run_dbt_and_capture
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.project import source_runs

pytestmark = pytest.mark.spark

SOURCES = """
sources:
  - name: lake
    schema: "{{ target.schema }}"
    tables:
      - name: orders
        external: {type: s3_csv_source, location: s3://staging-lake/orders/, header: true}
        columns:
          - {name: id, data_type: bigint, data_tests: [not_null]}
          - {name: customer}
      - name: customers
        external: {type: s3_csv_source, location: s3://staging-lake/customers, null: NONE}
      - name: ragged
        external: {type: s3_csv_source, location: s3://staging-lake/ragged}
      - name: mistyped
        external: {type: s3_csv_source, location: s3://staging-lake/orders, headers: true}
      - name: not_needed
        external: {type: s3_csv_source, location: s3://staging-lake/orders}
"""
STG_ORDERS = """
{{ config(materialized='ephemeral') }}
select id, customer from {{ source('lake', 'orders') }}
"""
BY_CUSTOMER = """
{{ config(materialized='table') }}
select c.name, count(*) as orders
from {{ ref('stg_orders') }} as o join {{ source('lake', 'customers') }} as c on c.id = o.customer
group by c.name
"""
MODELS = {
    "sources.yml": SOURCES,
    "stg_orders.sql": STG_ORDERS,
    "by_customer.sql": BY_CUSTOMER,
    "last_order.sql": "select max(id) as id from {{ source('lake', 'orders') }}",
    "all_orders.sql": "select * from {{ source('lake', 'orders') }}",
    "needs_ragged.sql": "select * from {{ source('lake', 'ragged') }}",
    "needs_ragged_too.sql": "select 1 as one from {{ source('lake', 'ragged') }}",
    "needs_mistyped.sql": "select * from {{ source('lake', 'mistyped') }}",
    "needs_nothing.sql": "select 1 as one",
}


def copied(log, source):
    """What the log says of a source, line by line."""
    return re.findall(rf"{re.escape(source)}: COPY (.*?) in \d+\.\ds", log)


class TestStaging:
    @pytest.fixture(scope="class")
    def models(self):
        return MODELS

    @pytest.fixture(scope="class", autouse=True)
    def bucket(self, make_bucket):
        objects = {
            "orders/2024/1.csv": "id,customer\n1,7\n2,8\n3,7\n",
            "customers/1.csv": "id,name\n7,Ada\n8,NONE\n",
            "ragged/1.csv": "a,b\n1\n",
        }
        make_bucket("staging-lake", objects)

    def rows(self, project, sql):
        return sorted((tuple(row) for row in project.run_sql(sql, fetch="all")), key=str)

    def ledger_exists(self, project, table):
        name = relation_from_name(project.adapter, f"{table}__ledger")
        return bool(
            project.run_sql(f"show tables in {name.schema} like '{name.identifier}'", fetch="all")
        )

    def test_1_empty_makes_the_relations_only(self, project):
        _, log = run_dbt_and_capture(["run", "--empty", "--select", "last_order"])
        assert "lake.orders: no object is read, as --empty says" in log
        assert copied(log, "lake.orders") == []
        assert self.rows(project, f"select * from {project.test_schema}.orders") == []

    def test_2_a_run_stages_what_it_needs_once_and_a_source_in_error_stops_only_its_models(
        self, project
    ):
        results, log = run_dbt_and_capture(["run", "--threads", "4"], expect_pass=False)
        statuses = {result.node.name: str(result.status) for result in results}
        assert statuses == {
            "by_customer": "success",
            "last_order": "success",
            "all_orders": "success",
            "needs_ragged": "error",
            "needs_ragged_too": "error",
            "needs_mistyped": "error",
            "needs_nothing": "success",
        }
        messages = {result.node.name: result.message for result in results}
        where = "lake.ragged: object s3://staging-lake/ragged/1.csv, line 2, byte 4: "
        assert where in messages["needs_ragged"]
        assert where in messages["needs_ragged_too"]
        assert "source lake.mistyped has 1 problem" in messages["needs_mistyped"]
        assert "external.headers is not an option of s3_csv_source; did you mean header?" in log
        assert copied(log, "lake.orders") == ["3 (1 new object, 0 rejected)"]
        assert copied(log, "lake.customers") == ["2 (1 new object, 0 rejected)"]
        by_customer = f"select name, orders from {project.test_schema}.by_customer"
        assert self.rows(project, by_customer) == [("Ada", 2), (None, 1)]
        # Two models needed it; it was tried once.
        tried = project.run_sql(
            f"show partitions {project.test_schema}.ragged__ledger", fetch="all"
        )
        assert sorted(row[0].split("phase=")[1] for row in tried) == ["failed", "plan"]
        assert not self.ledger_exists(project, "not_needed")

    def test_3_the_next_run_takes_new_objects_only(self, project, s3):
        s3.put_object(Bucket="staging-lake", Key="orders/0.csv", Body=b"id,customer\n4,8\n")
        _, log = run_dbt_and_capture(["run", "--select", "last_order"])
        assert copied(log, "lake.orders") == ["1 (1 new object, 0 rejected)"]
        assert copied(log, "lake.customers") == []
        _, log = run_dbt_and_capture(["run", "--select", "last_order", "all_orders"])
        assert copied(log, "lake.orders") == ["0 (0 new objects, 0 rejected)"]
        last_order = f"select id from {project.test_schema}.last_order"
        assert self.rows(project, last_order) == [(4,)]

    def test_4_a_test_of_a_source_stages_it(self, project, s3):
        s3.put_object(Bucket="staging-lake", Key="orders/5.csv", Body=b"id,customer\n,8\n")
        results, log = run_dbt_and_capture(
            ["test", "--select", "source:lake.orders"], expect_pass=False
        )
        assert copied(log, "lake.orders") == ["1 (1 new object, 0 rejected)"]
        assert [result.failures for result in results] == [1]

    def test_5_the_run_operation_ingests_what_it_is_told_to(self, project, s3):
        s3.put_object(Bucket="staging-lake", Key="orders/6.csv", Body=b"id,customer\n6,8\n")
        _, log = run_dbt_and_capture(
            ["run-operation", "ingest_s3_sources", "--args", "{select: [lake.orders]}"]
        )
        assert copied(log, "lake.orders") == ["1 (1 new object, 0 rejected)"]
        assert copied(log, "lake.customers") == []

    def test_6_the_run_operation_tries_all_sources_and_tells_all_errors(self, project):
        _, log = run_dbt_and_capture(["run-operation", "ingest_s3_sources"], expect_pass=False)
        assert copied(log, "lake.customers") == ["0 (0 new objects, 0 rejected)"]
        assert copied(log, "lake.not_needed") == ["6 (4 new objects, 0 rejected)"]
        assert "lake.ragged: object s3://staging-lake/ragged/1.csv, line 2" in log
        assert "source lake.mistyped has 1 problem" in log

    def test_7_the_run_operation_knows_the_names_of_sources(self, project):
        _, log = run_dbt_and_capture(
            ["run-operation", "ingest_s3_sources", "--args", "{select: lake.order}"],
            expect_pass=False,
        )
        assert "lake.order is not a source of type s3_csv_source" in log
        assert "did you mean lake.orders?" in log

    def test_8_docs_show_the_columns_of_the_source(self, project):
        catalog = run_dbt(["docs", "generate"])
        (orders,) = [s for key, s in catalog.sources.items() if key.endswith(".lake.orders")]
        assert {name: column.type for name, column in orders.columns.items()} == {
            "id": "bigint",
            "customer": "string",
            "_mz_object": "string",
            "_mz_record": "bigint",
            "_mz_last_modified": "timestamp",
        }


class TestHooksAndRejects:
    """Sources that no model reads: hooks of the run do, and a test of what was rejected."""

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "sources.yml": """
sources:
  - name: lake
    schema: "{{ target.schema }}"
    tables:
      - name: orders
        external: {type: s3_csv_source, location: s3://hooked-lake/orders/, on_bad_row: reject}
        columns: [{name: id, data_type: bigint}]
        config: {freshness: {warn_after: {count: 1, period: day}}}
      - name: orders__rejects
      - name: orders__objects
      - name: first
        external: {type: s3_csv_source, location: s3://hooked-lake/first/}
      - name: last
        external: {type: s3_csv_source, location: s3://hooked-lake/last/}
"""
        }

    @pytest.fixture(scope="class")
    def tests(self):
        return {"none_rejected.sql": "select * from {{ source('lake', 'orders__rejects') }}"}

    @pytest.fixture(scope="class")
    def project_config_update(self):
        seen = """
            create table if not exists {{ target.schema }}.TABLE_seen using parquet
            as select count(*) as n from {{ source('lake', 'TABLE') }}
        """
        return {
            "on-run-start": seen.replace("TABLE", "first"),
            "on-run-end": seen.replace("TABLE", "last"),
        }

    @pytest.fixture(scope="class", autouse=True)
    def bucket(self, make_bucket):
        objects = {
            "orders/1.csv": "id\n1\nx\n",
            "first/1.csv": "a\n1\n",
            "last/1.csv": "a\n2\n3\n",
        }
        make_bucket("hooked-lake", objects)

    def test_1_columns_are_known_before_anything_is_ingested(self, project):
        ask = "adapter.get_columns_in_relation(source('lake', 'orders__rejects'))"
        inline = f"select '{{{{ {ask} | map(attribute='name') | join(' ') }}}}'"
        compiled = run_dbt(["compile", "--inline", inline]).results[0].node.compiled_code
        assert "object record line byte raw column error" in compiled

    def test_2_ctrl_c_while_a_hook_ingests_ends_the_run(self, project, monkeypatch):
        def interrupted(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr(source_runs, "run_together", interrupted)
        with pytest.raises(DbtRuntimeError, match="interrupted by the user"):
            run_dbt(["test"])

    def test_3_each_is_ingested_before_it_is_read(self, project):
        results, log = run_dbt_and_capture(["test"], expect_pass=False)
        assert [copied(log, f"lake.{table}") for table in ("first", "orders", "last")] == [
            ["1 (1 new object, 0 rejected)"],
            ["1 (1 new object, 1 rejected)"],
            ["2 (1 new object, 0 rejected)"],
        ]
        [rejects] = [result for result in results if result.node.name == "none_rejected"]
        assert (str(rejects.status), rejects.failures) == ("fail", 1)
        for table, rows in (("first", 1), ("last", 2)):
            seen = project.run_sql(f"select n from {{schema}}.{table}_seen", fetch="all")
            assert [row[0] for row in seen] == [rows]

    def test_4_for_freshness_hooks_ingest_nothing(self, project, s3):
        s3.put_object(Bucket="hooked-lake", Key="first/2.csv", Body=b"a\n4\n")
        _, log = run_dbt_and_capture(["source", "freshness"])
        assert "on-run-start" in log
        assert "COPY" not in log
