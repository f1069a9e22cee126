{#
  Inserts the results of a run, cast to the types of the columns: the package gives times and
  numbers as text, which Spark refuses to insert.
#}
{% macro mzs3__insert_into_metadata_table(relation, fields, content) %}
  {%- set types = {} -%}
  {%- for column in adapter.get_columns_in_relation(relation) -%}
    {%- do types.update({column.name | lower: column.dtype}) -%}
  {%- endfor -%}
  {%- set values = [] -%}
  {%- for name in (fields | replace('(', '') | replace(')', '')).split(',') -%}
    {%- do values.append('cast(' ~ name | trim ~ ' as ' ~ types.get(name | trim | lower, 'string') ~ ')') -%}
  {%- endfor -%}
  {%- call statement() -%}
    insert into {{ relation }} {{ fields }}
    select {{ values | join(', ') }} from ({{ content }}) as told {{ fields }}
  {%- endcall -%}
{% endmacro %}
