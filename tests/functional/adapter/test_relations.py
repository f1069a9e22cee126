"""dbt's own acceptance tests: relations, caching, aliases, ephemeral models, concurrency.

Left out: `dbt clone` (its tests take snapshots, which parquet can't do), and
`BaseSameAliasDifferentDatabases` (Spark's relations have no database).
"""

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
from dbt.tests.adapter.ephemeral.test_ephemeral import (
    BaseEphemeralErrorHandling,
    BaseEphemeralMulti,
    BaseEphemeralNested,
)
from dbt.tests.adapter.relations.test_changing_relation_type import (
    BaseChangeRelationTypeValidator,
)
from dbt.tests.adapter.relations.test_dropping_schema_named import BaseDropSchemaNamed
from dbt.tests.util import check_relations_equal, run_dbt

SPARK_CAST = "{% macro string_literal(s) %} cast('{{ s }}' as string) {% endmacro %}"


class SparkAliases:
    @pytest.fixture(scope="class")
    def macros(self):
        from dbt.tests.adapter.aliases.fixtures import MACROS__EXPECT_VALUE_SQL

        return {"cast.sql": SPARK_CAST, "expect_value.sql": MACROS__EXPECT_VALUE_SQL}


class TestAliases(SparkAliases, BaseAliases):
    pass


class TestAliasErrors(SparkAliases, BaseAliasErrors):
    pass


class TestSameAliasDifferentSchemas(SparkAliases, BaseSameAliasDifferentSchemas):
    pass


class WithoutDatabases:
    def run_and_inspect_cache(self, project, run_args=None):
        """As the original, for relations that have no database."""
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


class TestConcurrency(BaseConcurrency):
    pass


class TestEphemeralErrorHandling(BaseEphemeralErrorHandling):
    pass


class TestEphemeralMulti(BaseEphemeralMulti):
    def test_ephemeral_multi(self, project):
        """As the original, but for the wording of the view's SQL."""
        run_dbt(["seed"])
        assert len(run_dbt(["run"])) == 3
        for model in ("dependent", "double_dependent", "super_dependent"):
            check_relations_equal(project.adapter, ["seed", model])


class TestEphemeralNested(BaseEphemeralNested):
    def test_ephemeral_nested(self, project):
        """As the original, but for the wording of the view's SQL."""
        assert len(run_dbt(["run"])) == 2
        check_relations_equal(project.adapter, ["source_table", "root_view"])


class TestChangeRelationTypeValidator(BaseChangeRelationTypeValidator):
    pass


class TestDropSchemaNamed(BaseDropSchemaNamed):
    pass
