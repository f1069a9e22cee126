{# dbt run-operation verify_copy --args '{location: s3://bucket/prefix, aws_connection: default}'

   Reads an export back, and compares every file with the manifest: that it is there, its size,
   SHA-256 and rows. Fails with all that differs, a line for each. `location` may be the manifest's
   URI too. #}

{% macro verify_copy(location=none, aws_connection='default') %}
  {% do adapter.run_operation('verify_copy', location, aws_connection) %}
{% endmacro %}
