{# dbt run-operation retract_s3_objects --args '{source: lake.orders, objects: ['2024/*.csv']}'

   Takes the rows of these objects out of the source, all in one step; they are not taken again as
   they are now. `objects` are keys, URIs or patterns. #}

{% macro retract_s3_objects(source=none, objects=none) %}
  {% do adapter.run_operation('retract_s3_objects', source, objects) %}
{% endmacro %}
