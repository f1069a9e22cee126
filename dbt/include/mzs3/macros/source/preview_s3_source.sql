{# dbt run-operation preview_s3_source --args '{source: lake.orders, rows: 10, objects: 3, infer: true}'

   Shows what a source would read, from the start of its first objects: the options in force, the
   header, the columns with their types, the first rows and the first errors. With `infer`, also
   columns as the sample suggests them, as YAML to paste. Pins, ingests and makes nothing. #}

{% macro preview_s3_source(source=none, rows=none, objects=none, infer=none) %}
  {% do adapter.run_operation('preview_s3_source', source, {
      'rows': rows, 'objects': objects, 'infer': infer,
  }) %}
{% endmacro %}
