{#
  Loads a seed's rows as one DataFrame and not as SQL: NULLs, large integers, quotes and
  backslashes arrive unchanged, and thousands of rows take seconds. Returns the text for target/run.
#}
{% macro mzs3__load_csv_rows(model, agate_table) %}
  {% if not adapter.has_session() %}
    {{ return(spark__load_csv_rows(model, agate_table)) }}
  {% endif %}
  {%- set column_types = model['config'].get('column_types', {}) -%}
  {{ return(adapter.load_seed_rows(this, agate_table, column_types)) }}
{% endmacro %}
