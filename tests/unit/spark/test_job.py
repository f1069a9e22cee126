import pytest

from dbt.adapters.mzs3.errors import ConfigError, SparkJobError
from dbt.adapters.mzs3.spark.job import run_job

SPARK = object()


def test_a_job_sees_spark_and_what_else_it_is_given():
    code = "def double():\n    return (spark, as_of * 2)\nresult = double()\n"

    assert run_job(SPARK, code, "models/a.py", {"as_of": 21}) == (SPARK, 42)


def test_a_job_without_a_result_has_none():
    assert run_job(SPARK, "x = 1", "models/a.py", {}) is None


def test_an_error_names_the_line_and_shows_it():
    code = "def model(dbt, session):\n    return 1 / 0\n\nmodel(None, spark)\n"

    with pytest.raises(SparkJobError) as caught:
        run_job(SPARK, code, "target/run/models/a.py", {})

    assert str(caught.value) == (
        "ZeroDivisionError: division by zero\n  in target/run/models/a.py, line 2: return 1 / 0"
    )


def test_a_syntax_error_names_its_line():
    with pytest.raises(SparkJobError, match=r'(?s)File "models/a\.py", line 2.*SyntaxError'):
        run_job(SPARK, "x = 1\nx = = 2\n", "models/a.py", {})


def test_an_error_of_our_own_passes_through():
    code = "raise error\n"
    error = ConfigError("model.a", ["header is not a flag"])

    with pytest.raises(ConfigError) as caught:
        run_job(SPARK, code, "models/a.py", {"error": error})

    assert caught.value is error
