"""Python models run in dbt's own session, and their tables are made as those of SQL models."""

import pytest
from dbt.tests.util import relation_from_name, run_dbt

PARTITIONED = """def model(dbt, session):
    dbt.config(materialized="table", partition_by="country")
    return session.createDataFrame([("NZ", 1), ("AU", 2)], "country string, n int")
"""
PANDAS = """import pandas

def model(dbt, session):
    return pandas.DataFrame({"n": [1, 2, 3]})
"""
ARROW = """import pyarrow

def model(dbt, session):
    return pyarrow.table({"n": [2**53 + 1]})
"""
EMPTY = """import pandas

def model(dbt, session):
    types = {"n": "int64", "ratio": "float64", "at": "datetime64[ns]", "sold": "bool"}
    columns = {name: pandas.Series(dtype=kind) for name, kind in types.items()}
    return pandas.DataFrame({**columns, "name": pandas.Series(dtype="object")})
"""
READS_PANDAS = """import pandas

def model(dbt, session):
    rows = pandas.DataFrame(dbt.ref("texts").collect(), columns=["name"])
    rows["upper"] = rows["name"].str.upper()
    return rows
"""
NO_COLUMNS = """import pandas

def model(dbt, session):
    return pandas.DataFrame()
"""
READS_ANOTHER = """def model(dbt, session):
    return dbt.ref("arrow").selectExpr("n + 1 as n")
"""
WRONG_TYPE = """def model(dbt, session):
    return [1, 2, 3]
"""
FAILS = """def model(dbt, session):
    limits = {}
    return limits["missing"]
"""
FAILS_IN_SPARK = """def model(dbt, session):
    return session.sql("select 1 / 0 as n")
"""


class TestPythonModels:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "partitioned.py": PARTITIONED,
            "pandas_rows.py": PANDAS,
            "arrow.py": ARROW,
            "reads_another.py": READS_ANOTHER,
            "empty_pandas.py": EMPTY,
            "texts.sql": "select 'a' as name from {{ ref('arrow') }}",
            "reads_pandas.py": READS_PANDAS,
        }

    @pytest.fixture(scope="class", autouse=True)
    def built(self, project):
        return run_dbt(["run"])

    def rows(self, project, name, columns="*"):
        relation = relation_from_name(project.adapter, name)
        sql = f"select {columns} from {relation} order by 1"
        return [tuple(row) for row in project.run_sql(sql, fetch="all")]

    def test_a_table_is_parquet_and_has_the_models_partitions(self, project):
        relation = relation_from_name(project.adapter, "partitioned")
        shown = project.run_sql(f"show create table {relation}", fetch="one")[0]

        assert "USING parquet" in shown
        assert "PARTITIONED BY (country)" in shown
        assert self.rows(project, "partitioned", "country, n") == [("AU", 2), ("NZ", 1)]

    def test_a_pandas_frame_is_a_table(self, project):
        assert self.rows(project, "pandas_rows") == [(1,), (2,), (3,)]

    def test_an_arrow_table_is_a_table_and_exact(self, project):
        assert self.rows(project, "arrow") == [(2**53 + 1,)]

    def test_a_model_reads_what_another_made(self, project):
        assert self.rows(project, "reads_another") == [(2**53 + 2,)]

    def test_a_pandas_frame_without_rows_is_a_table_with_its_columns(self, project):
        columns = project.run_sql("describe {schema}.empty_pandas", fetch="all")
        assert {(name, kind) for name, kind, _ in columns} == {
            ("n", "bigint"),
            ("ratio", "double"),
            ("at", "timestamp"),
            ("sold", "boolean"),
            ("name", "string"),
        }
        assert self.rows(project, "empty_pandas") == []

    def test_with_empty_a_model_that_reads_pandas_is_a_table_without_rows(self, project):
        assert self.rows(project, "reads_pandas") == [("a", "A")]
        run_dbt(["run", "--empty", "--select", "texts", "reads_pandas"])
        columns = project.run_sql("describe {schema}.reads_pandas", fetch="all")
        assert {(name, kind) for name, kind, _ in columns} == {
            ("name", "string"),
            ("upper", "string"),
        }
        assert self.rows(project, "reads_pandas") == []

    def test_no_temporary_view_is_left(self, project):
        views = project.run_sql("show views in {schema}", fetch="all")
        assert [row[1] for row in views] == ["texts"]


class TestFailingPythonModels:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "wrong_type.py": WRONG_TYPE,
            "fails.py": FAILS,
            "fails_in_spark.py": FAILS_IN_SPARK,
            "no_columns.py": NO_COLUMNS,
        }

    @pytest.fixture(scope="class")
    def messages(self, project):
        results = run_dbt(["run"], expect_pass=False)
        return {result.node.name: result.message for result in results}

    def test_a_wrong_type_is_named_with_what_to_return(self, messages):
        assert "the model returned builtins.list; return a Spark" in messages["wrong_type"]

    def test_a_frame_of_nothing_is_told_to_have_columns(self, messages):
        assert "a pandas DataFrame without rows and columns" in messages["no_columns"]

    def test_an_exception_names_the_file_and_the_line_and_shows_it(self, messages):
        assert "KeyError: 'missing'" in messages["fails"]
        assert 'models/fails.py, line 3: return limits["missing"]' in messages["fails"]

    def test_a_failure_of_spark_has_no_stack_trace(self, messages):
        assert "DIVIDE_BY_ZERO" in messages["fails_in_spark"]
        assert "\tat " not in messages["fails_in_spark"]
