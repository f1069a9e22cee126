{# dbt run-operation compact_shard --args '{location: s3://bucket/prefix, since: "2026-01-31"}'

   Makes one batch of all up to `since` (`latest`, ms since the epoch, a timestamp, or without it the
   time that the shard has), and removes files that no batch has had for `keep_hours`. #}

{% macro compact_shard(
    location=none, aws_connection='default', since=none, encoding=none, sort_by=none, keep_hours=none,
    parts=none, max_file_size=none
) %}
  {% do adapter.run_operation('compact_shard', location, aws_connection, {
      'since': since, 'encoding': encoding, 'sort_by': sort_by, 'keep_hours': keep_hours,
      'parts': parts, 'max_file_size': max_file_size,
  }) %}
{% endmacro %}
