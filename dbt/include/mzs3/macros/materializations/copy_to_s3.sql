{#
  Exports a model's rows to S3, and leaves a view of the model in Spark, so that ref(), tests and
  docs work on it. The work is a PySpark job that the adapter compiles, and writes to target/run.
  What a Python model returns becomes a table, and the job exports that.
#}
{% materialization copy_to_s3, adapter='mzs3', supported_languages=['sql', 'python'] %}

  {%- set is_python = model.language == 'python' -%}
  {%- set query = 'select * from ' ~ this.render() if is_python else sql -%}
  {#- Options are checked before anything is created. dbt takes jobs from a materialization itself
     alone, not from a macro that it calls: so the two that have one are alike. -#}
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
  {#- These can fail, and are of what stands in Spark: so they come before anything is written. -#}
  {%- do apply_grants(target_relation, grant_config, should_revoke=True) -%}
  {%- do persist_docs(target_relation, model) -%}

  {%- if not mzs3__is_skipped() -%}
    {%- call statement('main', language='python') -%}
      {{ job }}
    {%- endcall -%}
  {%- endif -%}

  {#- After what is committed: so a post-hook that fails has its error say what is there
     (`post_model_hook` of the adapter). -#}
  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}

{% endmaterialization %}


{#
  Whether models see but a part of what they read: then no job runs, and the result says so. Rows
  that are left out would be taken for rows that are gone, and an export be replaced by the others.
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
