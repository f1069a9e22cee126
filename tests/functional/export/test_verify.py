"""`verify_copy` on what `copy_to_s3` has written, through dbt and through an S3 that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from support.s3.faulty import FaultyS3, Flaky, Request, connection_to

from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.export.verify_copy import Verification, verify_copy
from dbt.adapters.mzs3.formats.write import FORMATS

pytestmark = pytest.mark.spark
Copy = Callable[..., CopyResult]

# Newlines, quotes, NULLs and empty texts, in several files.
ROWS = """
select id, case id % 4 when 0 then concat('line\n"', id, '"\n') when 1 then '' when 2 then 'x' end
  as note
from range(3000)
"""
EXPORT = "{{ config(materialized='copy_to_s3', location='s3://verified/orders', header=true) }}"


class TestVerifyOperation:
    """As a user calls it."""

    @pytest.fixture(scope="class", autouse=True)
    def exported(self, project: Any, s3: Any) -> Iterator[None]:
        s3.create_bucket(Bucket="verified")
        run_dbt(["run"])
        yield

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders_export.sql": EXPORT + ROWS}

    def verify(self, *, passes: bool, **arguments: str) -> str:
        args = "{" + ", ".join(f"{name}: '{value}'" for name, value in arguments.items()) + "}"
        command = ["--no-use-colors", "run-operation", "verify_copy", "--args", args]
        _, log = run_dbt_and_capture(command, expect_pass=passes)
        assert "Traceback" not in log
        return log

    def test_an_export_is_as_its_manifest_says(self, s3: Any) -> None:
        log = self.verify(passes=True, location="s3://verified/orders")
        assert "s3://verified/orders/: " in log
        assert "3000 rows" in log
        assert "all as the manifest says" in log

    def test_a_stray_object_is_a_warning(self, s3: Any) -> None:
        s3.put_object(Bucket="verified", Key="orders/old.csv", Body=b"1\n")
        log = self.verify(passes=True, location="s3://verified/orders/", aws_connection="default")
        assert "s3://verified/orders/old.csv is not in the manifest" in log
        s3.delete_object(Bucket="verified", Key="orders/old.csv")

    def test_every_difference_is_named_and_fails(self, s3: Any) -> None:
        first, second = "orders/part-0000-0001.csv", "orders/part-0001-0001.csv"
        was = {
            key: s3.get_object(Bucket="verified", Key=key)["Body"].read()
            for key in (first, second)
        }
        s3.put_object(Bucket="verified", Key=first, Body=was[first] + b"9,\n")
        s3.delete_object(Bucket="verified", Key=second)
        log = self.verify(passes=False, location="s3://verified/orders")
        assert f"s3://verified/{first}: size: expected {len(was[first])} bytes" in log
        assert f"s3://verified/{first}: SHA-256: expected " in log
        assert f"s3://verified/{first}: rows: expected " in log
        assert f"s3://verified/{second}: expected {len(was[second])} bytes" in log
        assert ": 4 problems" in log
        for key, body in was.items():
            s3.put_object(Bucket="verified", Key=key, Body=body)

    def test_what_is_no_export_is_said(self) -> None:
        log = self.verify(passes=False, location="s3://verified/elsewhere")
        assert "there is no s3://verified/elsewhere/_manifest.json" in log
        log = self.verify(passes=False, location="verified", aws_connection="lake")
        assert "aws_connection 'lake' is not in the profile; it has default" in log
        assert "location must start with s3://, not 'verified'" in log


@pytest.fixture
def verified(faulty: FaultyS3) -> Callable[[str], Verification]:
    def run(location: str) -> Verification:
        return verify_copy({"default": connection_to(faulty.endpoint)}, "default", location)

    return run


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"header": True, "escape": "\\", "null": "\\N", "force_quote": "*"},
        {"header": True, "compression": "gzip", "max_file_size": "20kB"},
        {"compression": "zstd", "partition_by": ["kind"]},
        {"single_file": "orders.txt", "compression": "gzip"},
        *({"format": name} for name in FORMATS),
        *(
            {"format": name, "partition_by": ["kind"], "compression": [*each.file_types][-1]}
            for name, each in FORMATS.items()
        ),
    ],
    ids=str,
)
def test_every_kind_of_export(
    copy: Copy, bucket: str, verified: Any, options: dict[str, Any]
) -> None:
    result = copy(f"select *, id % 3 as kind from ({ROWS})", f"s3://{bucket}/e", **options)
    found = verified(result.location)
    assert (found.problems, found.unlisted) == ((), ())
    assert (found.rows, found.files, found.bytes) == (3000, result.files, result.bytes)


@pytest.mark.slow
def test_an_empty_export(copy: Copy, bucket: str, verified: Any) -> None:
    for name, each in FORMATS.items():
        for compression in each.file_types:
            location = f"s3://{bucket}/{name}/{compression}"
            how = {"format": name, "compression": compression}
            location = copy("select 1 as a where false", location, **how).location
            assert verified(location).summary.endswith("all as the manifest says")


def test_faults_that_pass_are_no_problems(
    copy: Copy, bucket: str, faulty: FaultyS3, verified: Any
) -> None:
    location = copy(ROWS, f"s3://{bucket}/e", parts=8).location
    flaky = Flaky(seed=5, share=0.3)
    faulty.fault = flaky
    assert verified(location).problems == ()
    assert flaky.befallen.total() > 0


def test_an_object_that_is_denied_is_one_problem(
    copy: Copy, bucket: str, faulty: FaultyS3, verified: Any
) -> None:
    location = copy(ROWS, f"s3://{bucket}/e", parts=3).location

    def denied(request: Request) -> bool:
        return request.method == "GET" and request.key.endswith("part-0001-0001.csv")

    faulty.deny = denied
    (problem,) = verified(location).problems
    assert problem.startswith(
        f"s3://{bucket}/e/part-0001-0001.csv: reading it failed: AccessDenied: Access Denied"
    )
    assert "(needs s3:GetObject)" in problem
