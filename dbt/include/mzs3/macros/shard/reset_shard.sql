{# dbt run-operation reset_shard --args '{location: s3://bucket/prefix, confirm: true}'

   Nothing of the shard can be read any more, and the next run of its model writes all rows, as those of a
   new shard. Removes no file: compact_shard does. Spark is not started. #}

{% macro reset_shard(location=none, aws_connection='default', confirm=false) %}
  {% do adapter.run_operation('reset_shard', location, aws_connection, confirm) %}
{% endmacro %}
