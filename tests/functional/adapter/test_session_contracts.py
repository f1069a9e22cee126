"""Constraints that parquet can't enforce are said to be promises; the run goes on."""

import pytest
from dbt.tests.util import run_dbt_and_capture

MODEL = "{{ config(materialized='table') }} select cast(1 as bigint) as id"
SCHEMA = """
models:
  - name: promised
    config: {contract: {enforced: true}}
    columns:
      - name: id
        data_type: bigint
        constraints: [{type: not_null}]
"""


class TestNotNullOnParquet:
    @pytest.fixture(scope="class")
    def models(self):
        return {"promised.sql": MODEL, "schema.yml": SCHEMA}

    def test_it_warns_and_goes_on(self, project):
        results, log = run_dbt_and_capture(["run"])

        assert [result.status for result in results] == ["success"]
        assert "not_null" in log
        assert "not enforced" in log
