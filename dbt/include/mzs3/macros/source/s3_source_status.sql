{# dbt run-operation s3_source_status [--args '{select: [lake.orders]}']

   Prints a table of the selected sources, or of all: state, what waits and for how long,
   epochs, and the last error. It goes by the ledger, and waits for no run that is on. #}

{% macro s3_source_status(select=none) %}
  {% do adapter.run_operation('s3_source_status', select) %}
{% endmacro %}
