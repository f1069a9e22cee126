"""A seed whose value does not fit fails with Spark's words for it."""

import pytest
from dbt.tests.util import run_dbt


class TestSeedThatDoesNotFit:
    @pytest.fixture(scope="class")
    def seeds(self):
        return {"wrong.csv": "n\n1\nmany\n"}

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"seeds": {"+column_types": {"n": "int"}}}

    def test_the_value_and_the_type_are_named(self, project):
        (result,) = run_dbt(["seed"], expect_pass=False)

        assert 'The value \'many\' of the type "STRING" cannot be cast to "INT"' in result.message
        assert ".py" not in result.message
