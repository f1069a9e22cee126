{#
  What is new for a snapshot, as a view of the session: it can be described as any other, and needs
  no catalog that has views, nor a name that no other schema has. dbt-spark makes a view of Iceberg's
  in the schema `default`.
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
