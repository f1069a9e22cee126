{# A view is no replacement: it has no state to refresh, and no changes of configuration to detect. #}
{% materialization materialized_view, adapter='mzs3' %}
  {% do exceptions.raise_compiler_error(
    'Spark has no materialized views. Use materialized: view, whose rows are never old, or table or incremental, '
    ~ 'whose rows are those of the last run'
  ) %}
{% endmaterialization %}
