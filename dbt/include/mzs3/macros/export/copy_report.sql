{# dbt run-operation copy_report [--args '{days: 30, path: target/copy_report.html}']

   Writes one HTML page about the exports of the last days: how often, how reliable, how long, how
   large. `schema` is where their history is, the target's own unless said otherwise; one of another
   catalog is `catalog.schema`. #}

{% macro copy_report(schema=none, path='target/copy_report.html', days=90) %}
  {% do adapter.run_operation('copy_report', schema or target.schema, path, days) %}
{% endmacro %}
