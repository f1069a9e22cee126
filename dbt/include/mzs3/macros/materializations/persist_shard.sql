{#
  Writes the changes of a model's rows to a shard in S3, and leaves a view of the model in Spark,
  so that ref(), tests and docs work on it. The work is a PySpark job that the adapter compiles.
  The result of a Python model becomes a table instead of a view.
#}
{% materialization persist_shard, adapter='mzs3', supported_languages=['sql', 'python'] %}

  {%- set is_python = model.language == 'python' -%}
  {%- set query = 'select * from ' ~ this.render() if is_python else sql -%}
  {#- Checks the options before anything is created. dbt takes a job only from the materialization
     itself and not from a macro that it calls: hence the likeness of the two that have one. -#}
  {%- set job = adapter.compile_shard_job(config.model, query) -%}
  {%- set target_relation = this.incorporate(type='table' if is_python else 'view') -%}
  {%- set grant_config = config.get('grants') -%}

  {{ run_hooks(pre_hooks) }}

  {%- if is_python -%}
    {%- do mzs3__drop_view(target_relation) -%}
    {%- call statement('create_table', language='python') -%}
      {{ mzs3__python_table(true, target_relation, compiled_code) }}
    {%- endcall -%}
  {%- else -%}
    {{ mzs3__replace_with_view(target_relation, sql) }}
  {%- endif -%}
  {#- Before anything is written to S3, as these can fail. -#}
  {%- do apply_grants(target_relation, grant_config, should_revoke=True) -%}
  {%- do persist_docs(target_relation, model) -%}

  {%- if not mzs3__is_skipped() -%}
    {%- if should_full_refresh() -%}
      {%- do mzs3__say_what_full_refresh_does() -%}
    {%- endif -%}
    {%- call statement('main', language='python') -%}
      {{ job }}
    {%- endcall -%}
  {%- endif -%}

  {#- After the commit: the error of a failed post-hook says what is there (the adapter's
     `post_model_hook`). -#}
  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}

{% endmaterialization %}


{% macro mzs3__say_what_full_refresh_does() %}
  {%- set written = 'all rows once more' if config.get('mode') == 'append' else 'what changed' -%}
  {#- A location may be an expression, which only a run evaluates. -#}
  {%- set given = config.get('location') | string -%}
  {%- set location = given if given.startswith('s3://') else 's3://…' -%}
  {%- set connection = config.get('aws_connection', 'default') -%}
  {%- set named = '' if connection == 'default' else ', aws_connection: ' ~ connection -%}
  {%- do log(
      this.identifier ~ ': --full-refresh leaves the history of a shard as it is, and this run writes ' ~
      written ~ ', as any other does. To begin anew: dbt run-operation reset_shard --args '
      ~ "'{location: " ~ location ~ named ~ ", confirm: true}'", info=true
  ) -%}
{% endmacro %}
