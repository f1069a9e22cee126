{#
  Describes the relation by its name. Under `--empty` and `--sample` a reference renders as a
  subquery, which dbt-spark's own macro would try to describe.
#}
{% macro mzs3__get_columns_in_relation_raw(relation) -%}
  {%- call statement('get_columns_in_relation_raw', fetch_result=True) -%}
    describe extended {{ relation.render() }}
  {%- endcall -%}
  {%- do return(load_result('get_columns_in_relation_raw').table) -%}
{% endmacro %}


{% macro mzs3__get_columns_in_relation(relation) -%}
  {#- With the names of columns, which dbt-spark's own lacks: without them, snapshots with
      `hard_deletes: new_record` keep nothing of a deleted row. -#}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{% endmacro %}
