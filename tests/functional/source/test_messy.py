"""A file with habits of its own, through dbt: refused with an option, and read with it."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SOURCES = """
sources:
  - name: lake
    schema: "{{ target.schema }}"
    tables:
      - name: by_hand
        external:
          type: s3_csv_source
          location: s3://messy-lake/by-hand/
"""
OPTIONS = """          skip_lines: 1
          delimiter: '||'
          comment: '#'
          trim_space: true
          skip_blank_lines: true
          missing_columns: null
          extra_columns: rescue
"""
COLUMNS = """        columns: [{name: id, data_type: bigint}, {name: name}]
"""
FILE = """Report of May, 5" of rain
# made by hand
id || name

1 || "ann "
2
3||bob||x||"y z"
"""


class TestMessyFiles:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "sources.yml": SOURCES + COLUMNS,
            "names.sql": "select id, name, _mz_rescued from {{ source('lake', 'by_hand') }}",
        }

    @pytest.fixture(scope="class", autouse=True)
    def bucket(self, make_bucket):
        make_bucket(
            "messy-lake", {"by-hand/1.csv": FILE, "by-hand/2.csv": "x\nid||name\n\n4||eve\n"}
        )

    def test_the_error_leads_to_the_options_and_they_are_pinned(self, project):
        _, log = run_dbt_and_capture(["run"], expect_pass=False)
        assert "line 1, byte 0" in log
        write_file(SOURCES + OPTIONS + COLUMNS, project.project_root, "models", "sources.yml")
        run_dbt(["run"])
        rows = project.run_sql("select * from {schema}.names order by id", fetch="all")
        assert [tuple(row) for row in rows] == [
            *((1, "ann ", None), (2, None, None), (3, "bob", 'x||"y z"'), (4, "eve", None))
        ]
        _, log = run_dbt_and_capture(["run-operation", "purify_s3_sources"])
        assert (
            "WITH (missing_columns = 'null', extra_columns = 'rescue', skip_lines = 1, "
            "delimiter = '||', trim_space = TRUE, skip_blank_lines = TRUE, comment = '#');"
        ) in log
        write_file(SOURCES + COLUMNS, project.project_root, "models", "sources.yml")
        _, log = run_dbt_and_capture(["run"], expect_pass=False)
        assert "the skip_lines is declared as 0 but was pinned as 1" in log
