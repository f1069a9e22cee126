{# dbt run-operation validate_aws_connection --args '{name: lake, location: s3://bucket/prefix}'

   Tries below the location what exports need there, a line for each, and leaves nothing behind;
   fails if something is missing that every export needs. #}

{% macro validate_aws_connection(name='default', location=none) %}
  {% do adapter.validate_aws_connection(name, location) %}
{% endmacro %}
