{% macro mzs3__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {%- if language == 'python' -%}
    {{ mzs3__python_table(temporary, relation, compiled_code) }}
  {%- else -%}
    {{ spark__create_table_as(temporary, relation, compiled_code, language) }}
  {%- endif -%}
{%- endmacro %}


{#
  The job of a Python model. The model's result becomes a temporary view, from which the SQL of a
  SQL model creates the table: so file_format, partition_by, location_root and the rest mean the
  same for both.
#}
{% macro mzs3__python_table(temporary, relation, compiled_code) -%}
  {%- set view = model['alias'] ~ '__dbt_py' -%}
  {%- set rows = 'select * from ' ~ adapter.quote(view) -%}
  {%- if temporary -%}
    {#- An incremental model's new rows: a plain table, which the materialization drops. -#}
    {%- set statements = [
      'drop table if exists ' ~ relation.render(),
      'create table ' ~ relation.render() ~ ' using parquet as ' ~ rows
    ] -%}
  {%- else -%}
    {%- set statements = [spark__create_table_as(false, relation, rows, 'sql') | trim] -%}
  {%- endif -%}
{{ compiled_code }}

# --- How dbt-mzs3 makes a table of what the model returns. ---
from dbt.adapters.mzs3.api import create_table

create_table(
    spark,
    model(dbtObj(spark.table), spark),
    view={{ view | tojson }},
    statements={{ statements | tojson }},
)
{%- endmacro %}
