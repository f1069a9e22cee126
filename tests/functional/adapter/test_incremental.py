"""dbt's own acceptance tests: incremental models.

Left out, as parquet can neither merge nor drop columns: `BaseIncrementalPredicates`,
`BaseIncrementalUniqueKey`, `BaseMergeExcludeColumns`, and of `BaseIncrementalOnSchemaChange` the
two that remove a column. `BaseIncrementalBadStrategy` expects the wording of dbt's own check;
dbt-spark has a check of its own.
"""

import pytest
from dbt.tests.adapter.basic.test_incremental import (
    BaseIncremental,
    BaseIncrementalNotSchemaChange,
)
from dbt.tests.adapter.incremental.test_incremental_microbatch import BaseMicrobatch
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import (
    BaseIncrementalOnSchemaChange,
)

# On parquet a batch replaces its partition.
MICROBATCH = """
{{ config(
    materialized='incremental', incremental_strategy='microbatch', file_format='parquet',
    partition_by=['day'], event_time='event_time', batch_size='day',
    begin=modules.datetime.datetime(2020, 1, 1, 0, 0, 0)
) }}
select *, cast(event_time as date) as day from {{ ref('input_model') }}
"""


class TestIncremental(BaseIncremental):
    pass


class TestIncrementalNotSchemaChange(BaseIncrementalNotSchemaChange):
    pass


class TestIncrementalOnSchemaChange(BaseIncrementalOnSchemaChange):
    test_run_incremental_append_new_columns = None
    test_run_incremental_sync_all_columns = None


class TestMicrobatch(BaseMicrobatch):
    @pytest.fixture(scope="class")
    def microbatch_model_sql(self):
        return MICROBATCH
