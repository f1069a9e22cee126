"""dbt's own acceptance tests: functions, which dbt-spark does not make."""

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

# dbt 1.10 has no functions.
udfs = pytest.importorskip("dbt.tests.adapter.functions.test_udfs", exc_type=ImportError)
udafs = pytest.importorskip("dbt.tests.adapter.functions.test_udafs", exc_type=ImportError)

NO_PYTHON = "Spark keeps no functions in Python: write it in SQL"


class TestUDFsBasic(udfs.UDFsBasic):
    pass


class TestDeterministicUDF(udfs.DeterministicUDF):
    def check_function_volatility(self, sql):
        assert "NOT" not in sql
        assert "DETERMINISTIC" in sql


class TestNonDeterministicUDF(udfs.NonDeterministicUDF):
    def check_function_volatility(self, sql):
        assert "NOT DETERMINISTIC" in sql


class TestStableUDF(udfs.StableUDF):
    """Spark has no such functions, of which dbt warns."""

    def check_function_volatility(self, sql):
        assert "STABLE" not in sql
        assert "DETERMINISTIC" not in sql


class TestSqlUDFDefaultArgSupport(udfs.SqlUDFDefaultArgSupport):
    expect_default_arg_support = True


class TestCanFindScalarFunctionRelation(udfs.CanFindScalarFunctionRelation):
    pass


class Refused:
    """A function of a kind that Spark has not fails with an error that says what to do."""

    expected = NO_PYTHON

    def test_udfs(self, project):
        results, output = run_dbt_and_capture(["build"], expect_pass=False)
        assert [str(r.status) for r in results if r.node.resource_type == "function"] == ["error"]
        assert self.expected in output


class TestPythonUDFNotSupported(Refused, udfs.PythonUDFNotSupported):
    pass


class TestPythonUDFEntryPointRequired(udfs.PythonUDFEntryPointRequired):
    pass


class TestPythonUDFRuntimeVersionRequired(udfs.PythonUDFRuntimeVersionRequired):
    pass


class TestBasicSQLUDAF(Refused, udafs.BasicSQLUDAF):
    expected = "Spark keeps no aggregate functions in SQL"

    def test_udaf(self, project):
        self.test_udfs(project)


class TestBasicPythonUDAF(Refused, udafs.BasicPythonUDAF):
    def test_udaf(self, project):
        self.test_udfs(project)


class TestTableFunction(udfs.ErrorForUnsupportedType):
    """dbt's own has no functions of this type; Spark has."""

    @pytest.fixture(scope="class")
    def functions(self):
        return {
            "up_to.sql": "select explode(sequence(1L, cast(last as bigint))) as number",
            "up_to.yml": """
functions:
  - name: up_to
    arguments: [{name: last, data_type: int, default_value: 3}]
    returns: {data_type: number bigint}
""",
        }

    def test_udfs(self, project):
        run_dbt(["build"])

        shown = run_dbt(["show", "--inline", "select sum(number) from {{ function('up_to') }}()"])
        assert shown.results[0].agate_table.rows[0].values()[0] == 6
