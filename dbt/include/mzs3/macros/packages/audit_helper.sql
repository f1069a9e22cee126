{# Whether two queries have the same rows, in any order, by the number and the hashes of the rows. #}
{% macro mzs3__quick_are_queries_identical(query_a, query_b, columns, event_time) %}
  {%- set bounds = audit_helper._get_comparison_bounds(query_a, query_b, event_time) if event_time -%}
  {#- As JSON, because a hash of columns passes over NULLs and takes no maps; times with all their digits. -#}
  {%- set format = "yyyy-MM-dd HH:mm:ss.SSSSSS" -%}
  {%- set how = "map('ignoreNullFields', 'false', 'timestampFormat', '" ~ format ~ "XXX', 'timestampNTZFormat', '" ~ format ~ "')" -%}
  {%- set row = 'to_json(struct(' ~ (columns | join(', ') or '*') ~ '), ' ~ how ~ ')' -%}
  select count(distinct found) = 1 as are_tables_identical
  from (
  {%- for query in (query_a, query_b) %}
    select struct(count(*), sum(cast(xxhash64({{ row }}) as decimal(38, 0)))) as found
    from ({{ query }}) as compared
    {{ audit_helper.event_time_filter(bounds) }}
    {{ 'union all' if not loop.last }}
  {%- endfor %}
  ) as queries
{% endmacro %}


{# Spark counts no distinct values in a window. #}
{% macro mzs3___count_num_rows_in_status() %}
  {{ audit_helper._count_num_rows_in_status_without_distinct_window_func() }}
{% endmacro %}
