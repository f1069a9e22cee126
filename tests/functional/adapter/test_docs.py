"""dbt's own acceptance tests: docs and comments.

Left out: `CatalogRelationTypes` (needs a materialized view), `BaseGetCatalogForSingleRelation` (no
such capability), and of `BasePersistDocs` and its kin those that read a comment back from the
catalog (dbt-spark's catalog has none on parquet).
"""

import getpass

import pytest
from dbt.tests.adapter.basic import expected_catalog
from dbt.tests.adapter.basic.test_docs_generate import BaseDocsGenerate, BaseDocsGenReferences
from dbt.tests.adapter.persist_docs.test_persist_docs import (
    BasePersistDocsAllColumnsMissing,
    BasePersistDocsColumnMissing,
    BasePersistDocsQuotedColumnCaseSensitive,
    BasePersistDocsQuotedDescriptionNotAppliedOnMismatch,
)
from dbt.tests.util import AnyInteger

SPARK_CATALOG = {
    "role": getpass.getuser(),
    "id_type": "bigint",
    "text_type": "string",
    "time_type": "timestamp",
    "view_type": "view",
    "table_type": "table",
}
TABLE_STATS = {
    "has_stats": {**expected_catalog.no_stats()["has_stats"], "value": True},
    # Spark has counted no rows of these tables.
    "bytes": {
        "id": "bytes",
        "label": "bytes",
        "value": AnyInteger(),
        "description": None,
        "include": True,
    },
}


class TestDocsGenerate(BaseDocsGenerate):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project):
        return expected_catalog.base_expected_catalog(
            project, model_stats=expected_catalog.no_stats(), **SPARK_CATALOG
        )


class TestDocsGenReferences(BaseDocsGenReferences):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project):
        return expected_catalog.expected_references_catalog(
            project,
            bigint_type="bigint",
            model_stats=TABLE_STATS,
            seed_stats=expected_catalog.no_stats(),
            view_summary_stats=expected_catalog.no_stats(),
            **SPARK_CATALOG,
        )


class TestPersistDocsAllColumnsMissing(BasePersistDocsAllColumnsMissing):
    pass


class TestPersistDocsColumnMissing(BasePersistDocsColumnMissing):
    test_missing_column = None


class TestPersistDocsQuotedColumnCaseSensitive(BasePersistDocsQuotedColumnCaseSensitive):
    pass


class TestPersistDocsQuotedDescriptionNotAppliedOnMismatch(
    BasePersistDocsQuotedDescriptionNotAppliedOnMismatch
):
    pass
