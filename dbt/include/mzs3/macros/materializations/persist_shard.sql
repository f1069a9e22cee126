{#
  Writes what changed of a model's rows to a shard in S3. The work is a PySpark job that the adapter
  compiles, and writes to target/run; options are checked before anything is created.
#}
{% materialization persist_shard, adapter='mzs3', supported_languages=['sql', 'python'] %}
  {%- set job = adapter.compile_shard_job(config.model, mzs3__query_of_job()) -%}
  {%- if should_full_refresh() and adapter.narrowed_by() is none -%}
    {%- do mzs3__say_what_full_refresh_does() -%}
  {%- endif -%}
  {{ return(mzs3__materialize_with_job(job)) }}
{% endmaterialization %}


{% macro mzs3__say_what_full_refresh_does() %}
  {%- set written = 'all rows once more' if config.get('mode') == 'append' else 'what changed' -%}
  {%- do log(
      this.identifier ~ ': --full-refresh leaves the history of a shard as it is, and this run writes ' ~
      written ~ ', as any other does. To begin anew, give the model another location, or remove all '
      ~ 'that is below this one', info=true
  ) -%}
{% endmacro %}
