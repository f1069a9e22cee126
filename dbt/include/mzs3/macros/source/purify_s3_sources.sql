{# dbt run-operation purify_s3_sources [--args '{select: [lake.orders]}']

   Shows the purified definition of the selected sources, or of all, in SQL and as YAML to
   paste: what was pinned, or for a source that was never ingested, what would be. Makes nothing. #}

{% macro purify_s3_sources(select=none) %}
  {% do adapter.run_operation('purify_s3_sources', select) %}
{% endmacro %}
