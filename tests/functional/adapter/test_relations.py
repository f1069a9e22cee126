"""dbt's own acceptance tests: relations, caching, aliases, ephemeral models, concurrency.

Left out: the other tests of `dbt clone` (they take snapshots, which parquet can't do), and
`BaseSameAliasDifferentDatabases` (Spark's relations have no database).
"""

import re
from pathlib import Path

import pytest
from dbt.tests.adapter.aliases.test_aliases import (
    BaseAliasErrors,
    BaseAliases,
    BaseSameAliasDifferentSchemas,
)
from dbt.tests.adapter.caching.test_caching import (
    BaseCachingLowercaseModel,
    BaseCachingSelectedSchemaOnly,
    BaseCachingUppercaseModel,
    BaseNoPopulateCache,
)
from dbt.tests.adapter.concurrency.test_concurrency import BaseConcurrency
from dbt.tests.adapter.dbt_clone.test_dbt_clone import BaseCloneSameTargetAndState
from dbt.tests.adapter.ephemeral.test_ephemeral import (
    BaseEphemeralErrorHandling,
    BaseEphemeralMulti,
    BaseEphemeralNested,
)
from dbt.tests.adapter.relations.test_changing_relation_type import (
    BaseChangeRelationTypeValidator,
)
from dbt.tests.adapter.relations.test_dropping_schema_named import BaseDropSchemaNamed
from dbt.tests.util import check_relations_equal, run_dbt, run_dbt_and_capture

# The original casts to PostgreSQL's `text`.
SPARK_CAST = "{% macro string_literal(s) %} cast('{{ s }}' as string) {% endmacro %}"


class SparkAliases:
    @pytest.fixture(scope="class")
    def macros(self):
        from dbt.tests.adapter.aliases.fixtures import MACROS__EXPECT_VALUE_SQL

        return {"cast.sql": SPARK_CAST, "expect_value.sql": MACROS__EXPECT_VALUE_SQL}


class TestAliases(SparkAliases, BaseAliases):
    pass


class TestAliasErrors(BaseAliasErrors):
    pass


class TestSameAliasDifferentSchemas(SparkAliases, BaseSameAliasDifferentSchemas):
    pass


class WithoutDatabases:
    def run_and_inspect_cache(self, project, run_args=None):
        """As the original, which lowers the database: Spark's relations have none."""
        seen = []
        for _ in range(2):
            run_dbt(run_args)
            (relation,) = project.adapter.cache.relations
            seen.append((relation.database, relation.schema, relation.identifier.lower()))
        assert seen[0] == seen[1]
        assert seen[0][:2] == (None, project.test_schema)


class TestCachingLowercaseModel(WithoutDatabases, BaseCachingLowercaseModel):
    pass


class TestCachingSelectedSchemaOnly(WithoutDatabases, BaseCachingSelectedSchemaOnly):
    pass


class TestCachingUppercaseModel(WithoutDatabases, BaseCachingUppercaseModel):
    pass


class TestNoPopulateCache(WithoutDatabases, BaseNoPopulateCache):
    pass


class TestCloneSameTargetAndState(BaseCloneSameTargetAndState):
    # The original expects an error; here all that would be cloned is there already.
    def test_clone_same_target_and_state(self, project, unique_schema, other_schema):
        project.create_test_schema(other_schema)
        self.run_and_save_state(project.project_root)
        results, output = run_dbt_and_capture(["clone", "--defer", "--state", "target"])
        assert {result.message for result in results} == {"No-op"}
        assert "The state and target directories are the same: 'target'" in output


class TestConcurrency(BaseConcurrency):
    pass


class TestEphemeralErrorHandling(BaseEphemeralErrorHandling):
    pass


def without_spaces(sql):
    """The SQL in one word, without the digits of the schema's name."""
    return re.sub(r"[\s\d]+", "", sql)


def sql_of_view(name):
    return without_spaces(Path(f"target/run/test/models/{name}.sql").read_text())


class TestEphemeralMulti(BaseEphemeralMulti):
    def test_ephemeral_multi(self, project):
        """As the original, whose view is made with PostgreSQL's words and quotes."""
        run_dbt(["seed"])
        assert len(run_dbt(["run"])) == 3
        for model in ("dependent", "double_dependent", "super_dependent"):
            check_relations_equal(project.adapter, ["seed", model])
        schema = project.test_schema
        assert sql_of_view("double_dependent") == without_spaces(
            f"""
            create or replace view {schema}.double_dependent as
            with __dbt__cte__base as (
                select * from {schema}.seed
            ), __dbt__cte__base_copy as (
                select * from __dbt__cte__base
            )
            -- base_copy just pulls from base. Make sure the listed
            -- graph of CTEs all share the same dbt_cte__base cte
            select * from __dbt__cte__base where gender = 'Male'
            union all
            select * from __dbt__cte__base_copy where gender = 'Female'
            """
        )


class TestEphemeralNested(BaseEphemeralNested):
    def test_ephemeral_nested(self, project):
        """As the original, whose view is made with PostgreSQL's words and quotes."""
        assert len(run_dbt(["run"])) == 2
        check_relations_equal(project.adapter, ["source_table", "root_view"])
        schema = project.test_schema
        assert sql_of_view("root_view") == without_spaces(
            f"""
            create or replace view {schema}.root_view as
            with __dbt__cte__ephemeral_level_two as (
                select * from {schema}.source_table
            ), __dbt__cte__ephemeral as (
                select * from __dbt__cte__ephemeral_level_two
            )
            select * from __dbt__cte__ephemeral
            """
        )


class TestChangeRelationTypeValidator(BaseChangeRelationTypeValidator):
    pass


class TestDropSchemaNamed(BaseDropSchemaNamed):
    pass
