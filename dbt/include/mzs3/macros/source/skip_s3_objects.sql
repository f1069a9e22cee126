{# dbt run-operation skip_s3_objects --args '{source: lake.orders, objects: [orders/2.csv]}'

   These objects, which have failed or wait, are not taken as they are now; under a new ETag they
   are objects like any other. Rows they have stay. `objects` are keys, URIs or patterns. #}

{% macro skip_s3_objects(source=none, objects=none) %}
  {% do adapter.run_operation('skip_s3_objects', source, objects) %}
{% endmacro %}
