{# dbt run-operation ingest_s3_sources [--args '{select: [lake.orders]}']

   Ingests what is new in the selected sources, tables (`lake.orders`) or all tables of a
   source (`lake`); without `select`, in all of them. #}

{% macro ingest_s3_sources(select=none) %}
  {% do adapter.run_operation('ingest_s3_sources', select) %}
{% endmacro %}
