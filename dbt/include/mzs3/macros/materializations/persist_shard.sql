{#
  Writes what changed of a model's rows to a shard in S3, and leaves a view of the model in Spark,
  so that ref(), tests and docs work on it. The work is a PySpark job that the adapter compiles.
#}
{% materialization persist_shard, adapter='mzs3', supported_languages=['sql'] %}

  {#- Options are checked before anything is created. -#}
  {%- set job = adapter.compile_shard_job(
      model.unique_id, sql, config.model.config.extra, mzs3__given_on_schema_change()
  ) -%}
  {%- set target_relation = this.incorporate(type='view') -%}
  {%- set grant_config = config.get('grants') -%}

  {{ run_hooks(pre_hooks) }}

  {{ mzs3__replace_with_view(target_relation, sql) }}

  {%- if should_full_refresh() -%}
    {%- do mzs3__say_what_full_refresh_does() -%}
  {%- endif -%}
  {%- if not mzs3__is_skipped() -%}
    {%- call statement('main', language='python') -%}
      {{ job }}
    {%- endcall -%}
  {%- endif -%}

  {{ run_hooks(post_hooks) }}

  {%- do apply_grants(target_relation, grant_config, should_revoke=True) -%}
  {%- do persist_docs(target_relation, model) -%}

  {{ return({'relations': [target_relation]}) }}

{% endmaterialization %}


{# dbt's own default of on_schema_change is `ignore`; a shard has another one where none is given. #}
{% macro mzs3__given_on_schema_change() %}
  {%- if 'on_schema_change' in model.unrendered_config -%}
    {{ return(config.get('on_schema_change')) }}
  {%- endif -%}
  {{ return(none) }}
{% endmacro %}


{% macro mzs3__say_what_full_refresh_does() %}
  {%- set written = 'all rows once more' if config.get('mode') == 'append' else 'what changed' -%}
  {%- do log(
      this.identifier ~ ': --full-refresh leaves the history of a shard as it is, and this run writes ' ~
      written ~ ', as any other does. To begin anew, give the model another location, or remove all '
      ~ 'that is below this one', info=true
  ) -%}
{% endmacro %}
