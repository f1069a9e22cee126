"""dbt's own acceptance tests: functions. dbt-spark makes none, so these are what dbt refuses."""

from dbt.tests.adapter.functions.test_udfs import (
    ErrorForUnsupportedType,
    PythonUDFEntryPointRequired,
    PythonUDFNotSupported,
    PythonUDFRuntimeVersionRequired,
)


class TestErrorForUnsupportedType(ErrorForUnsupportedType):
    pass


class TestPythonUDFEntryPointRequired(PythonUDFEntryPointRequired):
    pass


class TestPythonUDFNotSupported(PythonUDFNotSupported):
    pass


class TestPythonUDFRuntimeVersionRequired(PythonUDFRuntimeVersionRequired):
    pass
