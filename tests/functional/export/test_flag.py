"""A project can turn copy_to_s3 off."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

pytestmark = pytest.mark.spark

EXPORT = "{{ config(materialized='copy_to_s3', location='s3://copy-flag/x/') }} select 1 as a"


class TestCopyTurnedOff:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"flags": {"enable_copy_to_s3": False}}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"export.sql": EXPORT, "plain.sql": "select 1 as a"}

    def test_exports_fail_before_anything_is_created(self, project: Any) -> None:
        results = {r.node.name: r for r in run_dbt(["run"], expect_pass=False)}
        assert (
            "copy_to_s3 is turned off for this project by the flag enable_copy_to_s3 in "
            "dbt_project.yml; to export model.test.export, set it to true there, or remove it"
        ) in results["export"].message
        assert results["plain"].status == "success"
        tables = [row[1] for row in project.run_sql("show tables in {schema}", fetch="all")]
        assert tables == ["plain"]
