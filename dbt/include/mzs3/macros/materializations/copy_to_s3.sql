{#
  Exports a model's rows to S3. The work is a PySpark job that the adapter compiles, and writes to
  target/run; options are checked before anything is created.
#}
{% materialization copy_to_s3, adapter='mzs3', supported_languages=['sql', 'python'] %}
  {%- set job = adapter.compile_copy_job(
      model.unique_id, mzs3__query_of_job(), config.model.config.extra, this, should_full_refresh()
  ) -%}
  {{ return(mzs3__materialize_with_job(job)) }}
{% endmaterialization %}
