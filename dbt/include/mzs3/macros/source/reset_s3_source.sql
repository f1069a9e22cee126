{# dbt run-operation reset_s3_source --args '{source: lake.orders, confirm: true}'

   Drops all that was ingested of a source, rows, ledger and views; the next run ingests every
   object that it finds, under the definition as it is then. #}

{% macro reset_s3_source(source=none, confirm=false) %}
  {% do adapter.run_operation('reset_s3_source', source, confirm) %}
{% endmacro %}
