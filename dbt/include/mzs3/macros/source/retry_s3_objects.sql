{# dbt run-operation retry_s3_objects --args '{source: lake.orders, objects: [orders/2.csv]}'

   The next run takes these objects again as they are then, in place of the rows they have.
   `objects` are keys, URIs or patterns. #}

{% macro retry_s3_objects(source=none, objects=none) %}
  {% do adapter.run_operation('retry_s3_objects', source, objects) %}
{% endmacro %}
