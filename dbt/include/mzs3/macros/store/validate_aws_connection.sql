{# dbt run-operation validate_aws_connection --args '{name: lake}'
   dbt run-operation validate_aws_connection --args '{name: lake, location: s3://bucket/prefix}'
   dbt run-operation validate_aws_connection --args '{name: lake, queue: orders-events}'

   Says who the connection is, or tries below the location what exports need there, and with the queue, by its name or its URL,
   what sources need; a line for each. Leaves nothing behind; fails if something is missing that
   every export needs, or every run of a source. #}

{% macro validate_aws_connection(name='default', location=none, queue=none) %}
  {% do adapter.run_operation('validate_aws_connection', name, location, queue) %}
{% endmacro %}
