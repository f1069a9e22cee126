{# dbt-spark leaves backslashes in texts, of which Spark takes the first of two, or the closing quote with it. #}
{% macro mzs3__comment_clause() %}
  {%- if config.persist_relation_docs() -%}
    comment {{ adapter.quote_literal(model.description) }}
  {%- endif -%}
{%- endmacro %}


{# Of a column of a view, which gets it when it is created. #}
{% macro get_column_comment_sql(column_name, column_dict) -%}
  {{ adapter.quote(column_name) }}
  {%- if column_dict.get(column_name, {}).get('description') %} comment {{ adapter.quote_literal(column_dict[column_name]['description']) }}
  {%- endif -%}
{% endmacro %}


{#
  A table that stays, as an incremental model's, gets the description that the model has now.
  dbt-spark gives it that of its first run. What is unchanged is not said again, as Delta and Iceberg
  make a version of it. Spark has no comments on functions.
#}
{% macro mzs3__persist_docs(relation, model, for_relation, for_columns) -%}
  {%- if relation.type == 'function' -%}
    {{ return('') }}
  {%- endif -%}
  {%- if for_relation and config.persist_relation_docs() and model.description and not relation.is_view -%}
    {%- set there = [] -%}
    {%- for row in get_columns_in_relation_raw(relation) if row['col_name'] == 'Comment' -%}
      {%- do there.append(row['data_type']) -%}
    {%- endfor -%}
    {%- if there[-1:] != [model.description] -%}
      {%- do run_query('comment on table ' ~ relation.render() ~ ' is ' ~ adapter.quote_literal(model.description)) -%}
    {%- endif -%}
  {%- endif -%}
  {{ return(spark__persist_docs(relation, model, for_relation, for_columns)) }}
{%- endmacro %}


{#
  Of columns of tables, whatever their format, whose comment is another: dbt-spark comments on those
  of Delta, Iceberg and Hudi alone. A view has had its columns' comments since it was created.
#}
{% macro mzs3__alter_column_comment(relation, column_dict) -%}
  {%- if not relation.is_view -%}
    {%- set there = {} -%}
    {%- for row in get_columns_in_relation_raw(relation) -%}
      {%- do there.setdefault(row['col_name'] | lower, row['comment'] or '') -%}
    {%- endfor -%}
    {%- for name, column in column_dict.items() if column['description'] != there[name | lower] -%}
      {%- do run_query(
          'alter table ' ~ relation.render() ~ ' alter column ' ~ adapter.quote(name) ~
          ' comment ' ~ adapter.quote_literal(column['description'])
      ) -%}
    {%- endfor -%}
  {%- endif -%}
{% endmacro %}
