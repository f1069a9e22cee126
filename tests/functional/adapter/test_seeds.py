"""dbt's own acceptance tests: seeds."""

import shutil
from pathlib import Path

import pytest
from dbt.tests.adapter.simple_seed import fixtures, seeds
from dbt.tests.adapter.simple_seed import test_seed as upstream
from dbt.tests.adapter.simple_seed.test_seed import (
    BaseBasicSeedTests,
    BaseSeedConfigFullRefreshOff,
    BaseSeedConfigFullRefreshOn,
    BaseSeedCustomSchema,
    BaseSeedParsing,
    BaseSeedSpecificFormats,
    BaseSeedWithEmptyDelimiter,
    BaseSeedWithUniqueDelimiter,
    BaseSeedWithWrongDelimiter,
    BaseSimpleSeedEnabledViaConfig,
    BaseSimpleSeedWithBOM,
    BaseTestEmptySeed,
)
from dbt.tests.adapter.simple_seed.test_seed_type_override import BaseSimpleSeedColumnOverride


class ExpectedRows:
    """The table that a seed must equal; the original makes it with PostgreSQL's types."""

    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project):
        values = seeds.seeds__expected_sql.split("VALUES", 1)[1].strip().removesuffix(";")
        project.run_sql(
            f"""
            create table {project.test_schema}.seed_expected using parquet as
            select cast(seed_id as bigint) as seed_id, first_name, email, ip_address,
                cast(birthday as timestamp) as birthday
            from values {values} as rows (seed_id, first_name, email, ip_address, birthday)
            """
        )


class NothingCascades:
    """Spark keeps what was made from a seed; PostgreSQL drops it along with the seed."""

    def _check_relation_end_state(self, run_result, project, exists):
        super()._check_relation_end_state(run_result, project, exists=True)


class TestBasicSeed(ExpectedRows, NothingCascades, BaseBasicSeedTests):
    pass


class TestSeedConfigFullRefreshOn(ExpectedRows, NothingCascades, BaseSeedConfigFullRefreshOn):
    pass


class TestSeedConfigFullRefreshOff(ExpectedRows, BaseSeedConfigFullRefreshOff):
    pass


class TestSeedCustomSchema(ExpectedRows, BaseSeedCustomSchema):
    pass


class TestSeedParsing(ExpectedRows, BaseSeedParsing):
    pass


class TestSeedSpecificFormats(BaseSeedSpecificFormats):
    @pytest.fixture(scope="class")
    def seeds(self):
        # A dot in a name parts a schema from a table in Spark, so this one has none.
        return {
            "big_seed.csv": "seed_id\n" + "".join(f"{n}\n" for n in range(20_000)),
            "seed_with_dots.csv": seeds.seed__with_dots_csv,
            "seed_unicode.csv": seeds.seed__unicode_csv,
        }


class TestSeedWithEmptyDelimiter(ExpectedRows, BaseSeedWithEmptyDelimiter):
    pass


class TestSeedWithUniqueDelimiter(ExpectedRows, BaseSeedWithUniqueDelimiter):
    pass


class TestSeedWithWrongDelimiter(ExpectedRows, BaseSeedWithWrongDelimiter):
    pass


class TestSimpleSeedEnabledViaConfig(BaseSimpleSeedEnabledViaConfig):
    pass


class TestSimpleSeedWithBOM(ExpectedRows, BaseSimpleSeedWithBOM):
    @pytest.fixture(scope="class", autouse=True)
    def copy_seed(self, project):
        # The original looks for its file beside this one.
        file = Path(upstream.__file__).with_name("seed_bom.csv")
        shutil.copy(file, Path(project.project_root) / "seeds")


class TestEmptySeed(BaseTestEmptySeed):
    pass


class TestSimpleSeedColumnOverride(BaseSimpleSeedColumnOverride):
    @pytest.fixture(scope="class")
    def models(self):
        # The original tests for PostgreSQL's types.
        schema = fixtures.properties__schema_yml
        for postgres, spark in (
            ("timestamp without time zone", "timestamp"),
            ("type: text", "type: string"),
            ("type: integer", "type: bigint"),
        ):
            schema = schema.replace(postgres, spark)
        return {"schema.yml": schema}

    @staticmethod
    def seed_enabled_types():
        return {"seed_id": "string", "birthday": "date"}

    @staticmethod
    def seed_tricky_types():
        names = ("seed_id_str", "looks_like_a_bool", "looks_like_a_date")
        return dict.fromkeys(names, "string")
