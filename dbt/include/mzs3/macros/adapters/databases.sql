{# dbt's databases are Spark's catalogs; dbt-spark has none. #}
{% macro mzs3__generate_database_name(custom_database_name=none, node=none) -%}
  {%- do return(custom_database_name if custom_database_name is none else custom_database_name | trim) -%}
{%- endmacro %}


{% macro mzs3__list_schemas(database) -%}
  {%- call statement('list_schemas', fetch_result=True, auto_begin=False) -%}
    show schemas {%- if database %} in {{ database }}{% endif %}
  {%- endcall -%}
  {{ return(load_result('list_schemas').table) }}
{%- endmacro %}


{# dbt-spark's snapshots leave out the database. #}
{% macro mzs3__get_or_create_relation(database, schema, identifier, type) -%}
  {%- set own = model.database if schema == model.schema and identifier == model.alias else none -%}
  {{ return(default__get_or_create_relation(database or own, schema, identifier, type)) }}
{%- endmacro %}
