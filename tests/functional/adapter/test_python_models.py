"""dbt's own acceptance tests: Python models."""

import sys
from types import ModuleType

import pytest
from dbt.tests.adapter.python_model.test_python_model import (
    BasePythonEmptyTests,
    BasePythonIncrementalTests,
    BasePythonMetaGetTests,
    BasePythonModelTests,
    BasePythonSampleTests,
)
from dbt.tests.adapter.python_model.test_spark import BasePySparkTests
from dbt.version import get_installed_version
from dbt_common.semver import VersionSpecifier


class TestPythonEmpty(BasePythonEmptyTests):
    pass


class TestPythonIncremental(BasePythonIncrementalTests):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"models": {"+incremental_strategy": "append"}}  # parquet can't merge


@pytest.mark.skipif(
    get_installed_version().compare(VersionSpecifier.from_version_string("1.11.0")) < 0,
    reason="dbt 1.10 hands a Python model none of its meta",
)
class TestPythonMetaGet(BasePythonMetaGetTests):
    pass


class TestPythonModel(BasePythonModelTests):
    pass


class TestPythonSample(BasePythonSampleTests):
    pass


class TestPySpark(BasePySparkTests):
    @pytest.fixture(scope="class", autouse=True)
    def koalas(self):
        # Koalas is a part of Spark today; its own package runs on no Spark that we support.
        import pyspark.pandas

        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "databricks", ModuleType("databricks"))
            patch.setitem(sys.modules, "databricks.koalas", pyspark.pandas)
            yield
