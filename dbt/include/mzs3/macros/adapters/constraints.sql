{#
  Only Delta tables take constraints after their creation, and dbt-spark takes a table without a
  declared format for one. Nothing enforces constraints of other formats, of which dbt warns.
#}
{% macro mzs3__persist_constraints(relation, model) %}
  {%- if config.get('contract').enforced -%}
    {%- if config.get('file_format', 'parquet') == 'delta' -%}
      {%- do alter_table_add_constraints(relation, model.constraints) -%}
      {%- do alter_column_set_constraints(relation, model.columns) -%}
    {%- else -%}
      {#- Rendering them has dbt warn; the result is not used. -#}
      {%- do adapter.render_raw_columns_constraints(raw_columns=model.columns) -%}
      {%- do adapter.render_raw_model_constraints(raw_constraints=model.constraints) -%}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}
