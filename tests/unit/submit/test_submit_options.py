import pytest

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.submit.options import SubmitOptions, parse_submit_options


def test_an_empty_mapping_takes_all_defaults():
    assert parse_submit_options({}) == SubmitOptions()


def test_values_are_texts_as_spark_takes_them():
    options = parse_submit_options(
        {
            "master": "yarn",
            "deploy_mode": "client",
            "conf": {"spark.executor.cores": 4, "spark.speculation": True},
            "py_files": ["helpers.zip"],
            "timeout": 3600,
        }
    )

    assert options == SubmitOptions(
        master="yarn",
        conf={"spark.executor.cores": "4", "spark.speculation": "true"},
        py_files=("helpers.zip",),
        timeout=3600,
    )


def test_every_problem_is_in_one_error_without_values_of_settings():
    with pytest.raises(ConfigError) as caught:
        parse_submit_options(
            {
                "mastr": "yarn",
                "deploy_mode": "cluster",
                "conf": {"hive.metastore.uris": "the-secret"},
                "py_files": "helpers.zip",
                "timeout": -1,
            }
        )

    assert [problem.split()[0] for problem in caught.value.problems] == [
        "spark_submit.mastr",
        "spark_submit.deploy_mode",
        "spark_submit.conf",
        "spark_submit.py_files",
        "spark_submit.timeout",
    ]
    assert "did you mean master?" in str(caught.value)
    assert "spark.hadoop." in str(caught.value)
    assert "the-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ("yarn", "spark_submit must be a mapping"),
        ({"deploy_mode": "cluster"}, "secrets of aws_connections in no safe way"),
        ({"deploy_mode": "local"}, "must be client, not 'local'"),
        ({"conf": {"spark.a": {"b": "the-secret"}}}, "a text or a number for spark.a"),
        ({"conf": {"spark.a": ["the-secret"]}}, "a text or a number for spark.a"),
        ({"conf": ["spark.a"]}, "must be a mapping of Spark's settings"),
        ({"master": "yarn", "conf": {"spark.master": "local"}}, "are both given"),
        ({"conf": {"spark.submit.deployMode": "cluster"}}, "is given as deploy_mode"),
        ({"py_files": ["a,b.zip"]}, "can't have a comma"),
    ],
)
def test_a_problem_says_what_is_wrong(declared, problem):
    with pytest.raises(ConfigError) as caught:
        parse_submit_options(declared)

    assert problem in str(caught.value)
    assert "the-secret" not in str(caught.value)


def test_the_repr_shows_no_setting():
    assert "the-secret" not in repr(SubmitOptions(conf={"spark.a": "the-secret"}))
