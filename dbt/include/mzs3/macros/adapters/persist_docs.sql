{# dbt-spark does not escape backslashes, so that one may escape the closing quote. #}
{% macro mzs3__comment_clause() %}
  {%- if config.persist_relation_docs() -%}
    comment {{ adapter.quote_literal(model.description) }}
  {%- endif -%}
{%- endmacro %}


{# The comment of a column in the statement that creates a view. #}
{% macro get_column_comment_sql(column_name, column_dict) -%}
  {{ adapter.quote(column_name) }}
  {%- if column_dict.get(column_name, {}).get('description') %} comment {{ adapter.quote_literal(column_dict[column_name]['description']) }}
  {%- endif -%}
{% endmacro %}


{#
  Gives a table that exists already, such as an incremental model's, the model's description of
  now: dbt-spark sets it only at creation. An unchanged one is not set again, as Delta and Iceberg
  would make a version for it. Spark has no comments on functions.
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
  Sets the comments of columns that differ, for tables of any format: dbt-spark does so for Delta,
  Iceberg and Hudi alone. A view has its comments from its creation.
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
