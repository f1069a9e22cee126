"""Seeds arrive in Spark exactly as they are in the file."""

import pytest
from dbt.tests.util import relation_from_name, run_dbt

EXACT = r"""id,big,text,ratio,day,moment,flag
1,9007199254740993,it's,0.1,2020-02-29,2020-02-29 23:59:59.123456,true
2,-9223372036854775808,C:\new\table,1e300,0001-01-01,1969-12-31 00:00:00,false
3,,,,,,
4,1,"He said ""None"" %s `x` ; --",-0.0,9999-12-31,2020-01-01 00:00:00,true
"""
TYPED = "amount,code,day\n12.30,007,2020-01-31\n,,\n99999999999999999999.99,it's,1999-12-31\n"
PARTITIONED = "country,n\nNZ,1\nAU,2\n"
LARGE = "n\n" + "".join(f"{n}\n" for n in range(20_000))
TOO_BIG = "n\n1\n9223372036854775808\n"


class TestExactSeeds:
    @pytest.fixture(scope="class")
    def seeds(self):
        return {
            "exact.csv": EXACT,
            "typed.csv": TYPED,
            "partitioned.csv": PARTITIONED,
            "large.csv": LARGE,
            "too_big.csv": TOO_BIG,
        }

    @pytest.fixture(scope="class")
    def project_config_update(self):
        typed = {"amount": "decimal(22,2)", "code": "string", "day": "date"}
        return {
            "seeds": {
                "test": {
                    "typed": {"+column_types": typed},
                    "partitioned": {"+partition_by": "country"},
                }
            }
        }

    @pytest.fixture(scope="class", autouse=True)
    def seeded(self, project):
        return {result.node.name: result for result in run_dbt(["seed"])}

    def rows(self, project, name, columns="*", order="1"):
        relation = relation_from_name(project.adapter, name)
        sql = f"select {columns} from {relation} order by {order}"
        return [tuple(row) for row in project.run_sql(sql, fetch="all")]

    def test_values_and_nulls_are_exact(self, project):
        columns = "id, big, text, cast(ratio as string), cast(day as string), " + (
            "cast(moment as string), flag"
        )
        assert self.rows(project, "exact", columns) == [
            (1, 2**53 + 1, "it's", "0.1", "2020-02-29", "2020-02-29 23:59:59.123456", True),
            (2, -(2**63), "C:\\new\\table", "1.0E300", "0001-01-01", "1969-12-31 00:00:00", False),
            (3, None, None, None, None, None, None),
            (
                4,
                1,
                'He said "None" %s `x` ; --',
                "-0.0",
                "9999-12-31",
                "2020-01-01 00:00:00",
                True,
            ),
        ]

    def test_column_types_are_applied_to_the_text_in_the_file(self, project):
        assert self.rows(
            project, "typed", "cast(amount as string), code", "amount nulls first"
        ) == [
            (None, None),
            ("12.30", "007"),
            ("99999999999999999999.99", "it's"),
        ]

    def test_a_partition_column_keeps_its_values_wherever_it_is_in_the_file(self, project):
        assert self.rows(project, "partitioned", "country, n") == [("AU", 2), ("NZ", 1)]

    def test_twenty_thousand_rows_are_one_write(self, project, seeded):
        assert self.rows(project, "large", "count(*), sum(n)") == [(20_000, 199_990_000)]
        assert seeded["large"].adapter_response["rows_affected"] == 20_000

    def test_integers_above_bigint_are_decimals(self, project):
        assert [str(n) for (n,) in self.rows(project, "too_big")] == ["1", "9223372036854775808"]

    def test_seeding_again_replaces_the_rows(self, project):
        run_dbt(["seed", "--select", "partitioned"])

        assert len(self.rows(project, "partitioned")) == 2
