"""What `persist_docs` hands to Spark, of each kind of relation."""

import pytest
import yaml
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

DESCRIPTION = 'it\'s a \\d of "x"\nends with \\'
KINDS = ("table", "view", "incremental")
EXPORT = """
{{ config(materialized='copy_to_s3', location='s3://persist-docs/exported') }}
select 1 as id
"""
PYTHON = "def model(dbt, session):\n    return session.sql('select 1 as id')\n"


def properties(description):
    """A properties file that describes every relation, and its column, with these words."""
    columns = [{"name": "id", "description": f"id: {description}"}]
    told = {"description": description, "columns": columns}
    models = [*KINDS, "of_python", "exported", "kept"]
    return yaml.safe_dump(
        {
            "models": [{"name": name, **told} for name in models],
            "seeds": [{"name": "seeded", **told}],
        }
    )


class TestPersistDocs:
    @pytest.fixture(scope="class", autouse=True)
    def the_bucket(self, s3):
        s3.create_bucket(Bucket="persist-docs")

    @pytest.fixture(scope="class")
    def project_config_update(self):
        both = {"+persist_docs": {"relation": True, "columns": True}}
        return {"models": both, "seeds": both}

    @pytest.fixture(scope="class")
    def seeds(self):
        return {"seeded.csv": "id\n1\n"}

    @pytest.fixture(scope="class")
    def models(self):
        kept = EXPORT.replace("copy_to_s3", "persist_shard").replace("/exported", "/kept")
        return {
            **{
                f"{kind}.sql": f"{{{{ config(materialized='{kind}') }}}} select 1 as id"
                for kind in KINDS
            },
            "of_python.py": PYTHON,
            "exported.sql": EXPORT,
            "kept.sql": kept,
            "schema.yml": properties(DESCRIPTION),
        }

    def told(self, project, relation):
        """What Spark has for the relation, and for its column."""
        rows = project.run_sql(f"describe extended {{schema}}.{relation}", fetch="all")
        [column] = {row[2] for row in rows if row[0] == "id"}
        [comment] = [row[1] for row in rows if row[0] == "Comment"]
        return comment, column

    def test_descriptions_are_told_to_the_letter(self, project):
        run_dbt(["build"])
        for relation in (*KINDS, "of_python", "exported", "kept", "seeded"):
            assert self.told(project, relation) == (DESCRIPTION, f"id: {DESCRIPTION}")

    def test_a_table_that_stays_has_the_new_ones(self, project):
        write_file(properties("other words"), project.project_root, "models", "schema.yml")
        run_dbt(["run", "--select", "incremental"])
        assert self.told(project, "incremental") == ("other words", "id: other words")

    def test_what_is_unchanged_is_not_told_again(self, project):
        _, log = run_dbt_and_capture(["--debug", "run", "--select", "incremental"])
        assert "describe extended" in log
        assert "comment on table" not in log
        assert "alter table" not in log
