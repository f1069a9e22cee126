"""What the adapter brings for packages, called by some that dispatch as the real ones do."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from dbt.tests.util import relation_from_name, run_dbt, run_dbt_and_capture

pytestmark = pytest.mark.spark

UTILS = """
{% macro tables_like(schema_pattern, table_pattern, exclude='') %}
  {% set sql = adapter.dispatch('get_tables_by_pattern_sql', 'dbt_utils')(
    schema_pattern, table_pattern, exclude, target.database) %}
  {% for row in run_query(sql).rows %}
    {% do log('found ' ~ row['table_schema'] ~ '.' ~ row['table_name'] ~ ': ' ~ row['table_type'],
              info=true) %}
  {% endfor %}
{% endmacro %}
"""
EXPECTATIONS = """
{% macro regexp_instr(value, regexp, position=1, occurrence=1, is_raw=False, flags='') %}
  {{ adapter.dispatch('regexp_instr', 'dbt_expectations')(
    value, regexp, position, occurrence, is_raw, flags) }}
{% endmacro %}
{% macro _validate_flags(flags, alphabet) %}{% endmacro %}
{% macro spark__regexp_instr(value, regexp, position, occurrence, is_raw, flags) %}
  length(regexp_extract({{ value }}, '{{ regexp }}', 0))
{% endmacro %}
"""
AUDIT_HELPER = """
{% macro quick_are_queries_identical(query_a, query_b, columns=[], event_time=none) %}
  {{ return(adapter.dispatch('quick_are_queries_identical', 'audit_helper')(
    query_a, query_b, columns, event_time)) }}
{% endmacro %}
{% macro _get_comparison_bounds(a_query, b_query, event_time) %}
  {{ return({"event_time": event_time, "least": 2}) }}
{% endmacro %}
{% macro event_time_filter(event_time_props) %}
  {% if event_time_props %}
    where {{ event_time_props.event_time }} >= {{ event_time_props.least }}
  {% endif %}
{% endmacro %}
"""
ARTIFACTS = """
{% macro upload(relation) %}
  {% do adapter.dispatch('insert_into_metadata_table', 'dbt_artifacts')(
    relation,
    '( node_id, run_started_at, rows_affected )',
    "select col1, col2, col3 from values ('a', '2026-01-31 12:00:00', '3'), ('b', null, null)"
  ) %}
{% endmacro %}
"""
EXTERNAL_TABLES = """
{% macro stage_external_sources() %}
  {% for node in graph.sources.values() if node.external %}
    {% for statement in adapter.dispatch('get_external_build_plan', 'dbt_external_tables')(node) %}
      {% do run_query(statement) %}
    {% endfor %}
  {% endfor %}
{% endmacro %}
{% macro spark__get_external_build_plan(node) %}
  {% do return([
    'drop view if exists ' ~ source(node.source_name, node.name),
    'create table ' ~ source(node.source_name, node.name) ~ ' (id int)',
  ]) %}
{% endmacro %}
"""
MATCHES = r"""
select
  {{ dbt_expectations.regexp_instr("'ab12'", '[0-9]') }} as first,
  {{ dbt_expectations.regexp_instr("'ab'", '[0-9]') }} as none,
  {{ dbt_expectations.regexp_instr("'ab12'", '\\d', is_raw=True) }} as raw,
  {{ dbt_expectations.regexp_instr('"it\'s"', "t's", is_raw=True) }} as quoted,
  {{ dbt_expectations.regexp_instr("'ab'", 'B') }} as case_counts,
  {{ dbt_expectations.regexp_instr("'ab'", 'B', flags='i') }} as case_does_not
"""
COMPARED = """
{% set ab = "select * from values (1, 'a'), (2, null), (2, null) as t(id, name)" %}
{% set ba = "select * from values (2, null), (1, 'a'), (2, null) as t(id, name)" %}
{% set fewer = "select * from values (1, 'a'), (2, null) as t(id, name)" %}
{% set other = "select * from values (1, 'a'), (2, ''), (2, '') as t(id, name)" %}
{% set one_more = ba ~ " union all select 1, 'b'" %}
{% set micros = "select timestamp'2026-01-31 12:00:00.123456' as at" %}
{% set less = "select timestamp'2026-01-31 12:00:00.123999' as at" %}
select
  ({{ audit_helper.quick_are_queries_identical(micros, less) }}) as to_the_digit,
  ({{ audit_helper.quick_are_queries_identical(ab, one_more, [], 'id') }}) as bounded,
{% for query in (ba, fewer, other) %}
  ({{ audit_helper.quick_are_queries_identical(ab, query, ['id', 'name']) }}) as c{{ loop.index }},
{% endfor %}
  ({{ audit_helper.quick_are_queries_identical(ab, other, ['id']) }}) as by_id
"""
EXECUTIONS = """
{{ config(materialized='table', post_hook="{{ dbt_artifacts.upload(this) }}") }}
select
  cast(null as string) as node_id,
  cast(null as timestamp) as run_started_at,
  cast(null as bigint) as rows_affected
where 1 = 0
"""
SOURCES = """
sources:
  - name: lake
    schema: "{{ target.schema }}"
    tables:
      - name: orders
        external: {type: s3_csv_source, location: s3://packages-lake/orders/}
        columns: [{name: id, data_type: bigint}]
      - name: history
        external: {type: persist_shard, location: s3://packages-lake/history/}
        columns: [{name: id}]
      - name: others
        external: {location: s3://packages-lake/others/}
"""


class TestPackages:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "matches.sql": MATCHES,
            "compared.sql": COMPARED,
            "executions.sql": EXECUTIONS,
            "a_table.sql": "{{ config(materialized='table') }} select 1 as id",
            "a_view.sql": "select 1 as id",
            "lake.yml": SOURCES,
            "reads_orders.sql": "select * from {{ source('lake', 'orders') }}",
        }

    @pytest.fixture(scope="class")
    def functions(self):  # which dbt 1.10 does not have
        return {
            "a_function.sql": "1",
            "a_function.yml": "functions: [{name: a_function, returns: {data_type: int}}]",
        }

    @pytest.fixture(scope="class")
    def packages(self, project_root):
        written = []
        for name, macros in {
            "audit_helper": AUDIT_HELPER,
            "dbt_artifacts": ARTIFACTS,
            "dbt_utils": UTILS,
            "dbt_expectations": EXPECTATIONS,
            "dbt_external_tables": EXTERNAL_TABLES,
        }.items():
            folder = Path(project_root) / "local" / name
            (folder / "macros").mkdir(parents=True)
            (folder / "macros" / "all.sql").write_text(macros)
            (folder / "dbt_project.yml").write_text(
                yaml.safe_dump({"name": name, "version": "1.0"})
            )
            written.append({"local": str(folder)})
        return {"packages": written}

    @pytest.fixture(scope="class", autouse=True)
    def installed(self, project):
        run_dbt(["deps"])

    @pytest.fixture(scope="class", autouse=True)
    def bucket(self, s3):
        s3.create_bucket(Bucket="packages-lake")
        s3.put_object(Bucket="packages-lake", Key="orders/1.csv", Body=b"id\n1\n2\n")

    def test_regular_expressions_of_dbt_expectations_match_as_written(self, project):
        run_dbt(["run", "--select", "matches"])
        found = project.run_sql("select * from {schema}.matches", fetch="one")
        assert tuple(found) == (3, 0, 3, 2, 0, 2)

    def test_audit_helper_compares_queries_whatever_their_order(self, project):
        run_dbt(["run", "--select", "compared"])
        found = project.run_sql("select * from {schema}.compared", fetch="one")
        assert tuple(found) == (False, True, True, False, False, True)

    def test_dbt_artifacts_inserts_texts_as_the_types_of_columns(self, project):
        run_dbt(["run", "--select", "executions"])
        sql = "select node_id, date_format(run_started_at, 'yyyy-MM-dd HH'), rows_affected"
        found = project.run_sql(sql + " from {schema}.executions order by 1", fetch="all")
        assert [tuple(row) for row in found] == [("a", "2026-01-31 12", 3), ("b", None, None)]

    def test_dbt_utils_finds_tables_and_views_by_patterns(self, project):
        run_dbt(["build", "--select", "a_table", "a_view", "a_function"])
        schema = project.test_schema.upper()
        asked = f"{{schema_pattern: '{schema[:-1]}%', table_pattern: 'A_%', exclude: '%view'}}"
        _, log = run_dbt_and_capture(["run-operation", "tables_like", "--args", asked])
        assert f"found {project.test_schema}.a_table: table" in log
        assert "a_view" not in log and "a_function" not in log

    def test_dbt_utils_finds_nothing_where_no_name_matches(self, project):
        asked = "{schema_pattern: no_such, table_pattern: '%'}"
        _, log = run_dbt_and_capture(["run-operation", "tables_like", "--args", asked])
        assert "found " not in log

    def test_dbt_external_tables_passes_over_what_the_adapter_ingests(self, project):
        run_dbt(["run", "--select", "reads_orders"])
        _, log = run_dbt_and_capture(["run-operation", "stage_external_sources"])
        assert "lake.orders is passed over" in log and "ingest_s3_sources" in log
        assert "lake.history is passed over" in log
        rows = project.run_sql("select id from {schema}.orders order by id", fetch="all")
        assert [tuple(row) for row in rows] == [(1,), (2,)]
        others = relation_from_name(project.adapter, "others")
        assert project.run_sql(f"select count(*) from {others}", fetch="one")[0] == 0
