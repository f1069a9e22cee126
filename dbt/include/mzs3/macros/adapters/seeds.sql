{#
  A seed's rows are loaded as one DataFrame: no SQL text is made of them, so NULLs, large
  integers, quotes and backslashes arrive as they are, and thousands of rows take seconds.
  Returns the text that target/run shows.
#}
{% macro mzs3__load_csv_rows(model, agate_table) %}
  {% if not adapter.has_session() %}
    {{ return(spark__load_csv_rows(model, agate_table)) }}
  {% endif %}
  {%- set column_types = model['config'].get('column_types', {}) -%}
  {{ return(adapter.load_seed_rows(this, agate_table, column_types)) }}
{% endmacro %}
