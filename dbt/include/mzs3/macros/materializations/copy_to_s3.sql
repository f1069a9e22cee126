{#
  Exports a model's rows to S3, and leaves a view of the model in Spark, so that ref(), tests and
  docs work on it. The work is a PySpark job that the adapter compiles, and writes to target/run.
  The result of a Python model becomes a table, which the job exports.
#}
{% materialization copy_to_s3, adapter='mzs3', supported_languages=['sql', 'python'] %}

  {%- set is_python = model.language == 'python' -%}
  {%- set query = 'select * from ' ~ this.render() if is_python else sql -%}
  {#- Checks the options before anything is created. dbt takes a job only from the materialization
     itself and not from a macro that it calls: hence the likeness of the two that have one. -#}
  {%- set job = adapter.compile_copy_job(config.model, query, this, should_full_refresh()) -%}
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
    {%- call statement('main', language='python') -%}
      {{ job }}
    {%- endcall -%}
  {%- endif -%}

  {#- After the commit: the error of a failed post-hook says what is there (the adapter's
     `post_model_hook`). -#}
  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}

{% endmaterialization %}


{#
  Whether models see only a part of their inputs (`--empty`, `--sample`): then no job runs, and the
  result says so. A shard would take the missing rows for deleted ones, and an export would lose them.
#}
{% macro mzs3__is_skipped() %}
  {%- set narrowed = adapter.narrowed_by() -%}
  {%- if narrowed is none -%}
    {{ return(false) }}
  {%- endif -%}
  {%- set said = 'SKIP COPY (' ~ narrowed ~ ')' -%}
  {%- do store_raw_result('main', message=said, code='SKIP', rows_affected='0') -%}
  {{ return(true) }}
{% endmacro %}


{% macro mzs3__replace_with_view(relation, sql, name='create_view') %}
  {%- set existing = load_cached_relation(relation) -%}
  {%- if existing is not none and not existing.is_view -%}
    {%- do adapter.drop_relation(existing) -%}
  {%- endif -%}
  {%- call statement(name) -%}
    {{ create_view_as(relation, sql) }}
  {%- endcall -%}
{% endmacro %}


{% macro mzs3__drop_view(relation) %}
  {%- set existing = load_cached_relation(relation) -%}
  {%- if existing is not none and existing.is_view -%}
    {%- do adapter.drop_relation(existing) -%}
  {%- endif -%}
{% endmacro %}
