{% macro mzs3__scalar_function_sql(target_relation) %}
  {{ return(mzs3__create_function(target_relation, model.returns.data_type)) }}
{% endmacro %}


{# `returns` of a table function has its columns, as `table (...)` or bare. #}
{% macro mzs3__table_function_sql(target_relation) %}
  {% set returned = model.returns.data_type | trim %}
  {% set is_table = modules.re.match('table\\W', returned, modules.re.IGNORECASE) %}
  {{ return(mzs3__create_function(target_relation, returned if is_table else 'TABLE (' ~ returned ~ ')')) }}
{% endmacro %}


{% macro mzs3__create_function(relation, returned) %}
  {% if model.get('overloads') %}
    {% do exceptions.raise_compiler_error(
      'a schema of Spark has one function of a name, so overloads would replace each other: give each a name of its own, '
      ~ 'or arguments a default_value'
    ) %}
  {% endif %}
  CREATE OR REPLACE FUNCTION {{ relation.render() }} ({{ formatted_scalar_function_args_sql() | trim }})
  RETURNS {{ returned }}
  {{ scalar_function_volatility_sql() | trim }}
  RETURN {{ (model.compiled_code | trim).rstrip(';') }}
{% endmacro %}


{% macro mzs3__formatted_scalar_function_args_sql() %}
  {%- set given = [] -%}
  {%- for one in model.arguments -%}
    {%- set default = '' if one.get('default_value') is none else ' DEFAULT ' ~ one.default_value -%}
    {%- do given.append(adapter.quote(one.name) ~ ' ' ~ one.data_type ~ default) -%}
  {%- endfor -%}
  {{ given | join(', ') }}
{% endmacro %}


{% macro mzs3__scalar_function_volatility_sql() %}
  {%- set volatility = model.config.get('volatility') -%}
  {%- if volatility == 'deterministic' -%}
    DETERMINISTIC
  {%- elif volatility == 'non-deterministic' -%}
    NOT DETERMINISTIC
  {%- elif volatility is not none -%}
    {%- do unsupported_volatility_warning(volatility) -%}
  {%- endif -%}
{% endmacro %}


{# Spark has no persistent functions of these kinds. #}
{% macro mzs3__scalar_function_python(target_relation) %}
  {% do mzs3__no_such_function('Python') %}
{% endmacro %}

{% macro mzs3__table_function_python(target_relation) %}
  {% do mzs3__no_such_function('Python') %}
{% endmacro %}

{% macro mzs3__aggregate_function_python(target_relation) %}
  {% do mzs3__no_such_function('Python') %}
{% endmacro %}

{% macro mzs3__scalar_function_javascript(target_relation) %}
  {% do mzs3__no_such_function('JavaScript') %}
{% endmacro %}

{% macro mzs3__aggregate_function_javascript(target_relation) %}
  {% do mzs3__no_such_function('JavaScript') %}
{% endmacro %}

{% macro mzs3__aggregate_function_sql(target_relation) %}
  {% do exceptions.raise_compiler_error(
    'Spark keeps no aggregate functions in SQL: write the aggregate where it is used, by a macro for example'
  ) %}
{% endmacro %}

{% macro mzs3__no_such_function(language) %}
  {% do exceptions.raise_compiler_error(
    'Spark keeps no functions in ' ~ language ~ ': write it in SQL (type: scalar or table), or as a model in Python'
  ) %}
{% endmacro %}
