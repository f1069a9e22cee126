"""Sources and models in a catalog of their own: dbt's database, and a name of three parts."""

import json
from pathlib import Path

import pytest
from dbt.tests.util import get_artifact, run_dbt, run_dbt_and_capture

pytestmark = pytest.mark.in_process  # a Connect server has no catalog of a test's own

CATALOG = {
    "spark.sql.catalog.beside": (
        "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
    ),
    "spark.sql.catalog.beside.url": "jdbc:derby:memory:beside;create=true",
    "spark.sql.catalog.beside.driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
}
YAML = """
sources:
  - name: given
    database: beside
    schema: raw
    tables: [{name: orders}]
  - name: at_home
    database: spark_catalog
    schema: "{{ target.schema }}"
    tables: [{name: here}]
"""
THERE = """
{{ config(materialized='incremental', incremental_strategy='append', database='beside') }}
select id, amount from {{ source('given', 'orders') }}
{% if is_incremental() %} where id > (select max(id) from {{ this }}) {% endif %}
"""
TABLE = """
{{ config(materialized='table', database='beside', schema='more') }}
select id from {{ ref('there') }}
"""
HERE = "{{ config(materialized='table') }} select * from {{ ref('there') }}"


class TestCatalog:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target):
        """On the Spark of all tests, which knows nothing of the catalog."""
        parameters = {**dbt_profile_target["server_side_parameters"], **CATALOG}
        return {**dbt_profile_target, "server_side_parameters": parameters}

    @pytest.fixture(scope="class")
    def seeds(self):
        return {"rates.csv": "id,rate\n1,0.5\n"}

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"seeds": {"+database": "beside"}}

    @pytest.fixture(scope="class")
    def models(self):
        return {"all.yml": YAML, "there.sql": THERE, "again.sql": TABLE, "here.sql": HERE}

    def test_rows_are_read_and_written_there(self, project):
        def rows(sql):
            return sorted(tuple(row) for row in project.run_sql(sql, fetch="all"))

        schema = project.test_schema
        for sql in (
            "create namespace if not exists beside.raw",
            "create table beside.raw.orders (id int, amount int)",
            "insert into beside.raw.orders values (1, 10)",
        ):
            project.run_sql(sql)

        run_dbt(["build"])
        project.run_sql("insert into beside.raw.orders values (2, 20)")
        run_dbt(["build"])

        assert rows(f"select * from beside.{schema}.there") == [(1, 10), (2, 20)]
        assert rows(f"select * from beside.{schema}_more.again") == [(1,), (2,)]
        assert rows(f"select * from {schema}.here") == [(1, 10), (2, 20)]
        assert rows(f"select id from beside.{schema}.rates") == [(1,)]

        manifest = get_artifact(project.project_root, "target", "manifest.json")
        names = {node["name"]: node["relation_name"] for node in manifest["nodes"].values()}
        assert names == {
            "there": f"beside.{schema}.there",
            "again": f"beside.{schema}_more.again",
            "here": f"{schema}.here",
            "rates": f"beside.{schema}.rates",
        }
        at_home = manifest["sources"]["source.test.at_home.here"]["relation_name"]
        assert at_home == f"{schema}.here"

        run_dbt(["docs", "generate"])
        text = Path(project.project_root, "target", "catalog.json").read_text()
        catalog = json.loads(text)
        assert sorted(catalog["nodes"]) == [
            "model.test.again",
            "model.test.here",
            "model.test.there",
            "seed.test.rates",
        ]
        assert sorted(catalog["sources"]) == [
            "source.test.at_home.here",
            "source.test.given.orders",
        ]
        assert {*catalog["nodes"]["model.test.there"]["columns"]} == {"id", "amount"}


S3 = """
sources:
  - name: lake
    database: beside
    schema: raw
    tables:
      - name: objects
        external: {type: s3_csv_source, location: 's3://catalogs/objects/'}
        columns: [{name: id, data_type: bigint}]
"""
READS = "select * from {{ source('lake', 'objects') }}"
EXPORTED = """
{{ config(materialized='copy_to_s3', location='s3://catalogs/out', database='beside') }}
select 1 as id
"""


class TestCatalogWithoutViews:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target):
        parameters = {**dbt_profile_target["server_side_parameters"], **CATALOG}
        return {**dbt_profile_target, "server_side_parameters": parameters}

    @pytest.fixture(scope="class")
    def models(self):
        return {"sources.yml": S3, "reads.sql": READS, "exported.sql": EXPORTED}

    def test_a_source_in_s3_and_an_export_there_say_what_to_do(self, project, s3):
        s3.create_bucket(Bucket="catalogs")

        results, _ = run_dbt_and_capture(["run"], expect_pass=False)

        said = {result.node.name: result.message for result in results}
        assert (
            "the schema raw is in the catalog beside, which can't have a source's" in said["reads"]
        )
        assert "this catalog has no views" in said["exported"]
