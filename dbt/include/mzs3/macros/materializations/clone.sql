{#
  A Delta table is cloned as dbt-spark does it. The clone of all else is a view, as dbt defines it
  for databases that clone no tables; dbt-spark refuses views and other formats.
#}
{% materialization clone, adapter='mzs3' %}

  {%- if defer_relation and this.render() == defer_relation.render() -%}
    {%- do log('Relation ' ~ this.render() ~ ' is what it would be a clone of', info=True) -%}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- if config.get('file_format') == 'delta' -%}
    {{ return(materialization_clone_spark()) }}
  {%- endif -%}

  {%- if not defer_relation -%}
    {%- do log('No relation found in state manifest for ' ~ model.unique_id, info=True) -%}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- if load_cached_relation(this) is not none and not flags.FULL_REFRESH -%}
    {%- do log('Relation ' ~ this.render() ~ ' already exists', info=True) -%}
    {{ return({'relations': []}) }}
  {%- endif -%}

  {%- set target_relation = this.incorporate(type='view') -%}
  {{ mzs3__replace_with_view(target_relation, 'select * from ' ~ defer_relation.render(), 'main') }}
  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=True) -%}

  {{ return({'relations': [target_relation]}) }}

{% endmaterialization %}
