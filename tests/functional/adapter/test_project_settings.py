"""Settings of whole projects, under which models run as under others."""

import pytest
from dbt.tests.util import run_dbt

OVERWRITES = """
{{ config(
    materialized='incremental', incremental_strategy='insert_overwrite', partition_by='day'
) }}
select id, date '2020-01-01' as day from range(5)
"""
TIMED = """
{{ config(event_time='at') }}
select id, timestamp '2020-01-01' as at from range(3)
"""
BATCHES = """
{{ config(
    materialized='incremental', incremental_strategy='microbatch', file_format='parquet',
    partition_by='at', event_time='at', batch_size='day', begin='2020-01-01'
) }}
select * from {{ ref('timed') }}
"""
OF_BATCHES = ["--event-time-start", "2020-01-01", "--event-time-end", "2020-01-02"]


class TestAppendedQueryComment:
    """Of `set x = y /* … */` Spark takes the comment for a part of the value."""

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"query-comment": {"append": True}}

    @pytest.fixture(scope="class")
    def models(self):
        hook = "{{ config(pre_hook='set spark.sql.shuffle.partitions = 3') }} select 1 as id"
        return {
            "overwrites.sql": OVERWRITES,
            "timed.sql": TIMED,
            "batches.sql": BATCHES,
            "hooked.sql": hook,
        }

    @pytest.mark.parametrize("time", ["first", "second"])
    def test_models_whose_partitions_are_overwritten_and_hooks_run(self, project, time):
        run_dbt(["run", *OF_BATCHES])
        for model, rows in (("overwrites", 5), ("batches", 3), ("hooked", 1)):
            [[count]] = project.run_sql(f"select count(*) from {{schema}}.{model}", fetch="all")
            assert count == rows


class TestFileFormatOfNone:
    """As packages write it for adapters that have no such config."""

    @pytest.fixture(scope="class")
    def project_config_update(self):
        unset = {"+file_format": "{{ 'delta' if target.type == 'databricks' else none }}"}
        return {
            "models": {
                "test": {
                    "of_jinja": unset,
                    "of_text": {"+file_format": "none"},
                    "of_empty": {"+file_format": "{{ '' }}"},
                }
            },
            "seeds": unset,
        }

    @pytest.fixture(scope="class")
    def seeds(self):
        return {"seeded.csv": "id\n1\n"}

    @pytest.fixture(scope="class")
    def models(self):
        def of(kind):
            return f"{{{{ config(materialized='{kind}') }}}} select 1 as id"

        python = "def model(dbt, session):\n    return session.sql('select 1 as id')\n"
        return {
            folder: {
                f"table_{folder}.sql": of("table"),
                f"grows_{folder}.sql": of("incremental"),
                f"python_{folder}.py": python,
            }
            for folder in ("of_jinja", "of_text", "of_empty")
        }

    @pytest.mark.parametrize("time", ["first", "second"])
    def test_tables_have_the_default_format(self, project, time):
        run_dbt(["build"])
        for table in ("seeded", "table_of_jinja", "grows_of_text", "python_of_empty"):
            shown = project.run_sql(f"show create table {{schema}}.{table}", fetch="one")[0]
            assert "USING parquet" in shown
