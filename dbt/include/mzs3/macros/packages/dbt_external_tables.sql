{#
  The statements that stage a source with dbt_external_tables: none for a source that dbt-mzs3 makes,
  whose relations the package would drop, or make in its own way; for others the package's own.
#}
{% macro mzs3__get_external_build_plan(source_node) %}
  {%- set type = source_node.external.type -%}
  {%- if type in ('s3_csv_source', 'persist_shard') -%}
    {%- do log(
      source_node.source_name ~ '.' ~ source_node.name ~ ' is passed over: dbt-mzs3 makes sources of the type '
      ~ type ~ ' itself, before what reads them' ~ (', or by the run-operation ingest_s3_sources' if type == 's3_csv_source'),
      info=true
    ) -%}
    {%- do return([]) -%}
  {%- endif -%}
  {%- do return(dbt_external_tables.spark__get_external_build_plan(source_node)) -%}
{% endmacro %}
