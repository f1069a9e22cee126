{#
  Where the regular expression first matches, from 1 on; 0 where it does not.

  The package's own for Spark reads `\d` as `d`, and ignores `is_raw` and `flags`.
#}
{% macro mzs3__regexp_instr(source_value, regexp, position, occurrence, is_raw, flags) -%}
  {%- if (position, occurrence) != (1, 1) -%}
    {{ exceptions.raise_compiler_error(
      "regexp_instr: Spark looks for the first match from the start of the text only; leave out position and occurrence"
    ) }}
  {%- endif -%}
  {%- if flags %}{{ dbt_expectations._validate_flags(flags, 'dimsuxU') }}{% endif -%}
  {%- if is_raw %}{% set regexp = regexp | replace('\\', '\\\\') | replace("'", "\\'") %}{% endif -%}
  regexp_instr({{ source_value }}, '{{ "(?" ~ flags ~ ")" if flags }}{{ regexp }}')
{%- endmacro %}
