{#
  The new rows of a snapshot as a temporary view: it can be described, and needs neither a catalog
  with views nor a unique name. For Iceberg, dbt-spark creates a view in the schema `default`.
#}
{% macro spark_build_snapshot_staging_table(strategy, sql, target_relation) %}
  {%- set staging = api.Relation.create(
      identifier=target_relation.identifier ~ '__dbt_tmp', schema=none, database=none, type='view'
  ) -%}
  {%- call statement('build_snapshot_staging_relation') -%}
    {{ create_temporary_view(staging, snapshot_staging_table(strategy, sql, target_relation)) }}
  {%- endcall -%}
  {{ return(staging) }}
{% endmacro %}
