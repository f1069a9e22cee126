"""What becomes of `dbt clone` and of `grants` on Spark, which has neither clones nor grants."""

import shutil
from pathlib import Path

import pytest
from dbt.tests.util import run_dbt

PYTHON = "def model(dbt, session):\n    return session.sql('select 3 as id')\n"
GRANTED = "{{ config(materialized='KIND', grants={'select': ['someone']}) }} select 1 as id"


class TestClone:
    @pytest.fixture(scope="class")
    def dbt_profile_data(self, unique_schema, dbt_profile_target):
        outputs = {
            name: {**dbt_profile_target, "schema": unique_schema + suffix}
            for name, suffix in (("default", ""), ("other", "_other"))
        }
        return {"test": {"outputs": outputs, "target": "default"}}

    @pytest.fixture(scope="class")
    def seeds(self):
        return {"seeded.csv": "id\n0\n"}

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "viewed.sql": "select 1 as id",
            "stored.sql": "{{ config(materialized='table') }} select 2 as id",
            "of_python.py": PYTHON,
        }

    def test_what_can_not_be_cloned_is_a_view_of_it(self, project, unique_schema):
        run_dbt(["build"])
        shutil.copytree(Path(project.project_root, "target"), "state")
        run_dbt(["clone", "--state", "state", "--target", "other"])
        for number, name in enumerate(("seeded", "viewed", "stored", "of_python")):
            clone = f"{unique_schema}_other.{name}"
            assert [tuple(row) for row in project.run_sql(f"table {clone}", fetch="all")] == [
                (number,)
            ]
            assert "CREATE VIEW" in project.run_sql(f"show create table {clone}", fetch="one")[0]

        assert {result.message for result in self.again()} == {"No-op"}
        assert {result.message for result in self.again("--full-refresh")} == {"OK"}
        project.run_sql(f"drop schema {unique_schema}_other cascade")

    def again(self, *more):
        return run_dbt(["clone", "--state", "state", "--target", "other", *more])


class TestGrants:
    @pytest.fixture(scope="class")
    def models(self):
        return {f"a_{kind}.sql": GRANTED.replace("KIND", kind) for kind in ("view", "table")}

    @pytest.mark.parametrize("time", ["first", "second"])
    def test_the_error_says_that_spark_has_none(self, project, time):
        results = run_dbt(["run"], expect_pass=False)
        assert len(results) == 2
        for result in results:
            assert "leave out the config `grants`" in result.message
