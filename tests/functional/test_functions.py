"""Functions of a project that read sources in S3; and what Spark has not."""

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

pytest.importorskip("dbt.tests.adapter.functions.test_udfs", exc_type=ImportError)

BUCKET = "functions"
FUNCTION = "select id from {{ source('lake', 'orders') }} where amount >= least"
YAML = """
functions:
  - name: large_orders
    description: Those of an amount
    config: {type: table}
    arguments: [{name: least, data_type: int}]
    returns: {data_type: table(id bigint)}
"""
SOURCES = """
sources:
  - name: lake
    schema: "{{ target.schema }}"
    tables:
      - name: orders
        external: {type: s3_csv_source, location: 's3://functions/orders/'}
        columns: [{name: id, data_type: bigint}, {name: amount, data_type: int}]
"""
MODEL = "{{ config(materialized='table') }} select id from {{ function('large_orders') }}(5)"


class TestFunctionThatReadsASource:
    @pytest.fixture(scope="class")
    def functions(self):
        return {"large_orders.sql": FUNCTION, "large_orders.yml": YAML}

    @pytest.fixture(scope="class")
    def project_config_update(self):  # which Spark has no place for
        return {"functions": {"+persist_docs": {"relation": True, "columns": True}}}

    @pytest.fixture(scope="class")
    def models(self):
        return {"sources.yml": SOURCES, "large.sql": MODEL}

    def test_what_it_reads_is_ingested_before_it_and_what_calls_it(self, project, s3):
        def ids():
            return sorted(
                row[0] for row in project.run_sql("select id from {schema}.large", fetch="all")
            )

        s3.create_bucket(Bucket=BUCKET)
        s3.put_object(Bucket=BUCKET, Key="orders/1.csv", Body=b"id,amount\n1,4\n2,5\n")
        run_dbt(["build"])
        assert ids() == [2]

        s3.put_object(Bucket=BUCKET, Key="orders/2.csv", Body=b"id,amount\n3,6\n")
        run_dbt(["run", "--select", "large"])
        assert ids() == [2, 3]


class TestWhatSparkHasNot:
    @pytest.fixture(scope="class")
    def models(self):
        return {"kept.sql": "{{ config(materialized='materialized_view') }} select 1 as id"}

    def test_the_error_says_what_to_use_for_a_materialized_view(self, project):
        _, output = run_dbt_and_capture(["run"], expect_pass=False)

        assert "Spark has no materialized views. Use materialized: view" in output
