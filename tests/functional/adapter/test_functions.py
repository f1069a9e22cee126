"""dbt's own acceptance tests: functions. dbt-spark makes none, so these are what dbt refuses."""

import pytest

# dbt 1.10 has no functions.
udfs = pytest.importorskip("dbt.tests.adapter.functions.test_udfs", exc_type=ImportError)


class TestErrorForUnsupportedType(udfs.ErrorForUnsupportedType):
    pass


class TestPythonUDFEntryPointRequired(udfs.PythonUDFEntryPointRequired):
    pass


class TestPythonUDFNotSupported(udfs.PythonUDFNotSupported):
    pass


class TestPythonUDFRuntimeVersionRequired(udfs.PythonUDFRuntimeVersionRequired):
    pass
