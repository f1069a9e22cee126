{#
  A query for the tables and views whose schema and name match the patterns of `like`, whatever
  their case. Spark has no information_schema to ask.
#}
{% macro mzs3__get_tables_by_pattern_sql(schema_pattern, table_pattern, exclude, database) %}
  {%- set found = [] -%}
  {%- set schemas = run_query('show schemas').columns[0].values() if execute else [] -%}
  {%- for schema in schemas -%}
    {%- if _mzs3_is_like(schema, schema_pattern) -%}
      {%- for relation in adapter.list_relations(none, schema) if relation.type in ('table', 'view') -%}
        {%- set name = relation.identifier -%}
        {%- if _mzs3_is_like(name, table_pattern) and not _mzs3_is_like(name, exclude) -%}
          {%- do found.append('(' ~ adapter.quote_literal(schema) ~ ', ' ~ adapter.quote_literal(name) ~ ", '" ~ relation.type ~ "')") -%}
        {%- endif -%}
      {%- endfor -%}
    {%- endif -%}
  {%- endfor -%}
  select * from values {{ found | join(', ') or "('', '', '')" }}
  as found(table_schema, table_name, table_type) where table_name != ''
{% endmacro %}


{# Whether the text matches a pattern of `like`, whatever its case. #}
{% macro _mzs3_is_like(text, pattern) %}
  {%- set pattern = modules.re.escape(pattern) | replace('%', '.*') | replace('_', '.') -%}
  {%- do return(modules.re.fullmatch('(?is)' ~ pattern, text) is not none) -%}
{% endmacro %}
