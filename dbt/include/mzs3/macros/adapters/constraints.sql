{#
  Only Delta tables take constraints after they are made; dbt-spark takes a table of no
  declared format for one. On other formats a constraint is a promise that nothing enforces:
  the run says so, and goes on.
#}
{% macro mzs3__persist_constraints(relation, model) %}
  {%- if config.get('contract').enforced -%}
    {%- if config.get('file_format', 'parquet') == 'delta' -%}
      {%- do alter_table_add_constraints(relation, model.constraints) -%}
      {%- do alter_column_set_constraints(relation, model.columns) -%}
    {%- else -%}
      {#- What they render is of no use here; rendering them is what warns. -#}
      {%- do adapter.render_raw_columns_constraints(raw_columns=model.columns) -%}
      {%- do adapter.render_raw_model_constraints(raw_constraints=model.constraints) -%}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}
