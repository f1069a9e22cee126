"""The run-operations on sources, a full refresh and pending objects, as dbt's users meet them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from dbt_common.exceptions import DbtRuntimeError

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SOURCES = """
sources:
  - name: lake
    schema: "{{ target.schema }}"
    config:
      freshness: {warn_after: {count: 1, period: day}}
    tables:
      - name: orders
        external:
          type: s3_csv_source
          location: s3://operated-lake/orders/
          on_overwrite: replace
        columns: [{name: order_id, data_type: bigint}]
      - name: rates
        external:
          type: s3_csv_source
          location: s3://operated-lake/rates/
          max_objects_per_run: 1
"""
MODELS = {
    "sources.yml": SOURCES,
    "ids.sql": "select order_id from {{ source('lake', 'orders') }}",
}


def operate(operation, arguments, **how):
    command = ["run-operation", operation, "--args", arguments]
    return run_dbt_and_capture(command, **how)[1]


class TestOperations:
    @pytest.fixture(scope="class")
    def models(self):
        return MODELS

    @pytest.fixture(scope="class", autouse=True)
    def bucket(self, make_bucket):
        objects = {
            "orders/1.csv": "id\n1\n",
            "orders/2.csv": "id\n2\n",
            "rates/1.csv": "a,b\n1,2\n",
            "rates/2.csv": "a,b\n3\n",
        }
        make_bucket("operated-lake", objects)

    def ids(self, project):
        return sorted(
            row[0] for row in project.run_sql("select order_id from {schema}.orders", fetch="all")
        )

    def test_1_purified_definitions_are_shown_before_anything_is_made(self, project):
        log = operate("purify_s3_sources", "{select: lake.orders}")
        assert "lake.orders (not ingested yet; this would be pinned):" in log
        assert (
            "CREATE SOURCE orders (order_id) FROM S3 DISCOVER OBJECTS MATCHING 'orders/**' "
            "USING BUCKET SCAN 'operated-lake' FORMAT CSV WITH HEADER COLUMNS (id);"
        ) in log
        assert "header: [id]" in log
        log = operate("preview_s3_source", "{source: lake.orders, rows: 1, infer: true}")
        assert "header: (id) in s3://operated-lake/orders/1.csv" in log
        assert "read of s3://operated-lake/orders/2.csv (5 B): 1 record, 0 errors" in log
        assert "- {name: order_id, data_type: bigint}" in log
        log = operate("preview_s3_source", "{source: lake.rates}")
        assert "line 2, byte 4: expected 2 columns, got 1, in '3'" in log
        log = operate("s3_source_status", "{}")
        assert re.search(r"lake\.orders +never ingested", log)
        assert project.run_sql("show tables in {schema}", fetch="all") == []
        query = "select * from {{ source('lake', 'orders') }}"
        with pytest.raises(DbtRuntimeError, match=r"never ingested: lake\.orders\. To do so: dbt"):
            run_dbt(["show", "--inline", query])
        _, log = run_dbt_and_capture(["run", "--empty"])
        assert "lake.orders: no object is read, as --empty says" in log
        assert "new object" not in log

    def test_2_pending_objects_are_in_sources_json_for_who_asks(self, project, s3):
        run_dbt(["source", "freshness"])
        written = json.loads(Path("target/sources.json").read_text())["results"]
        assert not any("pending_objects" in one["adapter_response"] for one in written)
        run_dbt(["run"])
        s3.put_object(Bucket="operated-lake", Key="orders/3.csv", Body=b"id\n33\n")
        run_dbt(["source", "freshness", "--vars", "mzs3_freshness_pending: true"])
        written = json.loads(Path("target/sources.json").read_text())["results"]
        pending = {
            one["unique_id"].rpartition(".")[2]: (
                one["adapter_response"]["pending_objects"],
                one["adapter_response"]["pending_bytes"],
            )
            for one in written
        }
        assert pending == {"orders": (1, 6), "rates": (2, 14)}

    def test_3_a_full_refresh_leaves_sources_alone_unless_a_variable_names_them(self, project, s3):
        s3.put_object(Bucket="operated-lake", Key="orders/2.csv", Body=b"id\n22\n")
        s3.delete_object(Bucket="operated-lake", Key="orders/1.csv")
        _, log = run_dbt_and_capture(["run", "--full-refresh"])
        assert "lake.orders: COPY 2 (2 new objects, 0 rejected)" in log
        assert "lake.orders: --full-refresh leaves what is ingested as it is" in log
        assert self.ids(project) == [1, 22, 33]
        _, log = run_dbt_and_capture(["run", "--vars", "mzs3_full_refresh_sources: true"])
        assert "lake.orders: COPY 0 (0 new objects, 0 rejected)" in log
        _, log = run_dbt_and_capture(
            ["run", "--full-refresh", "--vars", "mzs3_full_refresh_sources: [lake.orders]"]
        )
        assert "lake.orders: COPY 2 (2 new objects, 0 rejected)" in log
        assert self.ids(project) == [22, 33]

    def test_4_objects_are_retracted_and_taken_again(self, project):
        log = operate("retract_s3_objects", "{source: lake.orders, objects: [2.csv, '3*']}")
        assert "lake.orders: 2 objects retracted, 2 rows taken out" in log
        assert self.ids(project) == []
        log = operate("retry_s3_objects", "{source: lake.orders, objects: orders/3.csv}")
        assert "lake.orders: 1 object to be taken again by the next run" in log
        operate("ingest_s3_sources", "{select: lake.orders}")
        assert self.ids(project) == [33]

    def test_5_the_status_tells_what_waits_and_the_error_and_skipping_gets_out_of_it(
        self, project
    ):
        log = operate("ingest_s3_sources", "{select: lake.rates}")
        assert "1 object (6 B) waits for the next run" in log
        log = operate("ingest_s3_sources", "{select: lake.rates}", expect_pass=False)
        assert 'objects: ["s3://operated-lake/rates/2.csv"]}\'' in log
        log = operate("s3_source_status", "{select: lake}")
        assert re.search(r"lake\.orders +ok +1 +0 +- +- +- +2 ", log)
        assert re.search(r"lake\.rates +in error +1 +1 +6 B +1 +\d+[sm] .* +1 ", log)
        assert "lake.rates: object s3://operated-lake/rates/2.csv, line 2, byte 4: " in log
        operate("skip_s3_objects", "{source: lake.rates, objects: [2.csv]}")
        assert re.search(r"lake\.rates +ok +1 +0 ", operate("s3_source_status", "{}"))

    def test_6_a_pinned_source_is_previewed_as_it_is_declared_now(self, project):
        log = operate("preview_s3_source", "{source: lake.orders}")
        assert "columns: order_id bigint" in log
        assert "until the source is reset" not in log
        path = Path("models/sources.yml")
        declared = path.read_text()
        path.write_text(declared.replace("order_id, data_type: bigint", "order_id"))
        log = operate("preview_s3_source", "{source: lake.orders}")
        path.write_text(declared)
        assert "a run would refuse this until the source is reset:" in log
        assert "is declared as order_id string but was pinned as order_id bigint" in log
        assert "columns: order_id string" in log
        assert self.ids(project) == [33]

    def test_7_a_reset_is_confirmed(self, project):
        log = operate("reset_s3_source", "{source: lake.orders}", expect_pass=False)
        assert "reset_s3_source drops all rows and the ledger of lake.orders" in log
        assert "'{source: lake.orders, confirm: true}'" in log
        assert self.ids(project) == [33]
        log = operate("reset_s3_source", "{source: lake.orders, confirm: true}")
        assert "lake.orders: reset; the next run ingests every object again" in log
        operate("ingest_s3_sources", "{select: lake.orders}")
        assert self.ids(project) == [22, 33]
