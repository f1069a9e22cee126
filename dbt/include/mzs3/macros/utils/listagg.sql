{#
  Spark's own listagg, which keeps the order that is asked for. A limit counts delimiters, so with
  one, no value may hold the delimiter.
#}
{% macro mzs3__listagg(measure, delimiter_text, order_by_clause, limit_num) -%}
  {%- set list -%}
    listagg({{ measure }}, {{ delimiter_text }})
    {%- if order_by_clause %} within group ({{ order_by_clause }}){% endif -%}
  {%- endset -%}
  {%- if limit_num -%}
    substring_index({{ list }}, {{ delimiter_text }}, {{ limit_num }})
  {%- else -%}
    {{ list }}
  {%- endif -%}
{%- endmacro %}
