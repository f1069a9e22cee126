"""dbt's own acceptance tests: hooks.

Left out: hooks on snapshots, which parquet can't do.
"""

import pytest
from dbt.tests.adapter.hooks import test_model_hooks as model_hooks
from dbt.tests.adapter.hooks.test_model_hooks import (
    BaseDuplicateHooksInConfigs,
    BaseHookRefs,
    BaseHooksRefsOnSeeds,
    BasePrePostModelHooks,
    BasePrePostModelHooksInConfig,
    BasePrePostModelHooksInConfigKwargs,
    BasePrePostModelHooksInConfigWithCount,
    BasePrePostModelHooksOnSeeds,
    BasePrePostModelHooksOnSeedsPlusPrefixed,
    BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace,
)
from dbt.tests.adapter.hooks.test_run_hooks import BaseAfterRunHooks, BasePrePostRunHooks

FIELDS = [
    "test_state",
    "target_dbname",
    "target_host",
    "target_name",
    "target_schema",
    "target_type",
    "target_user",
    "target_pass",
    "target_threads",
    "run_started_at",
    "invocation_id",
    "thread_id",
]
# The original updates the seed, which parquet can't: the column comes with a copy of the table.
SEED_HOOKS = [
    "create table {{ this }}_hooked using parquet as select *, 1 as new_col from {{ this }}",
    "drop table {{ this }}",
    "alter table {{ this }}_hooked rename to {{ this }}",
    # call any macro to track dependency
    "select cast(null as {{ dbt.type_int() }}) as id",
]


def create_hook_table(project, name):
    """As the original's file of SQL, which has PostgreSQL's types."""
    columns = ", ".join(
        f"{field} {'int' if field == 'target_threads' else 'string'}" for field in FIELDS
    )
    project.run_sql(f"drop table if exists {project.test_schema}.{name}")
    project.run_sql(f"create table {project.test_schema}.{name} ({columns}) using parquet")


def hook_rows(project, table, state):
    """As the original, which quotes the columns as PostgreSQL does."""
    sql = f"select * from {project.test_schema}.{table} where test_state = '{state}'"
    return [row.asDict() for row in project.run_sql(sql, fetch="all")]


def check_hook_row(project, row, host, threads):
    """As the original, which expects the target of a PostgreSQL server."""
    assert row["target_dbname"] == ""
    assert row["target_host"] == (host or "")
    assert row["target_name"] == "default"
    assert row["target_schema"] == project.test_schema
    assert row["target_threads"] == 4
    assert row["target_type"] == "mzs3"
    assert row["target_user"] == ""
    assert row["target_pass"] == ""
    assert row["run_started_at"]
    assert row["invocation_id"]
    assert row["thread_id"].startswith(threads)


class SparkModelHooks:
    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project):
        create_hook_table(project, "on_model_hook")

    def check_hooks(self, state, project, host, count=1):
        rows = hook_rows(project, "on_model_hook", state)
        assert len(rows) == count
        for row in rows:
            check_hook_row(project, row, host, threads="Thread-")


class TestPrePostModelHooks(SparkModelHooks, BasePrePostModelHooks):
    pass


class TestPrePostModelHooksUnderscores(
    SparkModelHooks, model_hooks.TestPrePostModelHooksUnderscores
):
    pass


class TestHookRefs(SparkModelHooks, BaseHookRefs):
    pass


class TestPrePostModelHooksInConfig(SparkModelHooks, BasePrePostModelHooksInConfig):
    pass


class TestPrePostModelHooksInConfigKwargs(SparkModelHooks, BasePrePostModelHooksInConfigKwargs):
    pass


class TestPrePostModelHooksInConfigWithCount(
    SparkModelHooks, BasePrePostModelHooksInConfigWithCount
):
    pass


class TestPrePostModelHooksOnSeeds(BasePrePostModelHooksOnSeeds):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"seeds": {"post-hook": SEED_HOOKS, "quote_columns": False}}


class TestPrePostModelHooksOnSeedsPlusPrefixed(BasePrePostModelHooksOnSeedsPlusPrefixed):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"seeds": {"+post-hook": SEED_HOOKS, "quote_columns": False}}


class TestPrePostModelHooksOnSeedsPlusPrefixedWhitespace(
    BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace
):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"seeds": {"+post-hook": SEED_HOOKS, "quote_columns": False}}


class TestHooksRefsOnSeeds(BaseHooksRefsOnSeeds):
    pass


class TestDuplicateHooksInConfigs(BaseDuplicateHooksInConfigs):
    pass


class TestAfterRunHooks(BaseAfterRunHooks):
    pass


class TestPrePostRunHooks(BasePrePostRunHooks):
    @pytest.fixture
    def setUp(self, project, monkeypatch):
        create_hook_table(project, "on_run_hook")
        project.run_sql(f"drop table if exists {project.test_schema}.schemas")
        project.run_sql(f"drop table if exists {project.test_schema}.db_schemas")
        monkeypatch.setenv("TERM_TEST", "TESTING")

    @pytest.fixture(scope="class")
    def project_config_update(self):
        # The original makes tables with PostgreSQL's types.
        start = [
            "{{ custom_run_hook('start', target, run_started_at, invocation_id) }}",
            "create table {{ target.schema }}.start_hook_order_test (id int)",
            "drop table {{ target.schema }}.start_hook_order_test",
            "{{ log(env_var('TERM_TEST'), info=True) }}",
        ]
        end = [
            "{{ custom_run_hook('end', target, run_started_at, invocation_id) }}",
            "create table {{ target.schema }}.end_hook_order_test (id int)",
            "drop table {{ target.schema }}.end_hook_order_test",
            "create table {{ target.schema }}.schemas (name string) using parquet",
            "insert into {{ target.schema }}.schemas values "
            "{% for name in schemas %}('{{ name }}'){{ ',' if not loop.last }}{% endfor %}",
            "create table {{ target.schema }}.db_schemas (db string, name string) using parquet",
            "insert into {{ target.schema }}.db_schemas values {% for db, name in database_schemas"
            " %}('{{ db }}', '{{ name }}'){{ ',' if not loop.last }}{% endfor %}",
        ]
        return {"on-run-start": start, "on-run-end": end, "seeds": {"quote_columns": False}}

    def check_hooks(self, state, project, host):
        (row,) = hook_rows(project, "on_run_hook", state)
        check_hook_row(project, row, host, threads=("Thread-", "MainThread"))

    def assert_used_schemas(self, project):
        schema = project.test_schema
        rows = project.run_sql(f"select * from {schema}.schemas", fetch="all")
        assert [tuple(row) for row in rows] == [(schema,)]
        rows = project.run_sql(f"select * from {schema}.db_schemas", fetch="all")
        assert [tuple(row) for row in rows] == [("None", schema)]  # relations have no database
