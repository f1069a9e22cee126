{#
  Describes the relation itself. Under `--empty` and `--sample`, dbt-spark's own would describe
  the subquery that a reference then is, which is no name.
#}
{% macro mzs3__get_columns_in_relation_raw(relation) -%}
  {%- call statement('get_columns_in_relation_raw', fetch_result=True) -%}
    describe extended {{ relation.render() }}
  {%- endcall -%}
  {%- do return(load_result('get_columns_in_relation_raw').table) -%}
{% endmacro %}


{% macro mzs3__get_columns_in_relation(relation) -%}
  {#- With names, which dbt-spark's own lacks: so snapshots with `hard_deletes: new_record` would
      keep nothing of a row that is gone. -#}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{% endmacro %}
