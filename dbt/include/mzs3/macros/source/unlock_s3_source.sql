{# dbt run-operation unlock_s3_source --args '{source: lake.orders}'

   Takes the lock of a source away from whoever has it, without waiting until it ends by itself. A
   run that had it commits nothing more; one in the middle of after_commit goes on with the objects
   of the epoch it is at. #}

{% macro unlock_s3_source(source=none) %}
  {% do adapter.run_operation('unlock_s3_source', source) %}
{% endmacro %}
