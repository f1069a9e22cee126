"""What asks for a source's columns before anything was ingested from it."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SOURCES = """
sources:
  - name: lake
    schema: "{{ target.schema }}"
    tables:
      - name: orders
        external: {type: s3_csv_source, location: s3://tested-lake/orders/}
        columns: [{name: id, data_type: bigint}, {name: customer}]
      - name: customers
        external: {type: s3_csv_source, location: s3://tested-lake/customers/}
unit_tests:
  - name: counts_by_customer
    model: by_customer
    given:
      - input: source('lake', 'orders')
        rows: [{id: 1, customer: a}, {id: 2, customer: a}]
    expect:
      rows: [{customer: a, orders: 2}]
"""
BY_CUSTOMER = """
select customer, count(*) as orders from {{ source('lake', 'orders') }} group by customer
"""
NAMED = """
{% set columns = adapter.get_columns_in_relation(source('lake', 'customers')) %}
{% set names = columns | map(attribute='name') %}
select {{ names | reject('in', ['_mz_object', '_mz_record', '_mz_last_modified']) | join(', ') }}
from {{ source('lake', 'customers') }}
"""


class TestBeforeTheFirstIngestion:
    @pytest.fixture(scope="class")
    def models(self):
        return {"sources.yml": SOURCES, "by_customer.sql": BY_CUSTOMER, "named.sql": NAMED}

    @pytest.fixture(scope="class", autouse=True)
    def bucket(self, make_bucket):
        objects = {
            "orders/1.csv": "id,customer\n1,a\n2,b\n",
            "customers/1.csv": "id,name\n7,Ada\n",
        }
        make_bucket("tested-lake", objects)

    def test_1_a_unit_test_makes_the_relations_and_reads_no_object(self, project):
        results = run_dbt(["test", "--select", "by_customer,test_type:unit"])
        assert [str(result.status) for result in results] == ["pass"]
        orders = f"select count(*) from {project.test_schema}.orders"
        assert project.run_sql(orders, fetch="one")[0] == 0

    def test_2_a_build_tests_then_ingests_then_runs(self, project):
        results = run_dbt(["build"])
        assert {result.node.name: str(result.status) for result in results} == {
            "counts_by_customer": "pass",
            "by_customer": "success",
            "named": "success",
        }
        by_customer = f"select customer, orders from {project.test_schema}.by_customer"
        assert len(project.run_sql(by_customer, fetch="all")) == 2
        named = project.run_sql(f"select * from {project.test_schema}.named", fetch="all")
        assert [tuple(row) for row in named] == [("7", "Ada")]
