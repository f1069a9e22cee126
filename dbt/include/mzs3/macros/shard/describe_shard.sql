{# dbt run-operation describe_shard --args '{location: s3://bucket/prefix, aws_connection: default}'

   Prints a shard's columns with their tags, its batches, rows and bytes. Spark is not started. #}

{% macro describe_shard(location=none, aws_connection='default') %}
  {% do adapter.run_operation('describe_shard', location, aws_connection) %}
{% endmacro %}
