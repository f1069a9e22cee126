"""The same rows give the same bytes, on one core and on two."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark
SCRIPT = Path(__file__).with_name("export_hard_to_order.py")


def exported(s3: Any, bucket: str, prefix: str) -> tuple[dict[str, bytes], list[str]]:
    contents = {
        entry["Key"].removeprefix(prefix): s3.get_object(Bucket=bucket, Key=entry["Key"])[
            "Body"
        ].read()
        for entry in s3.list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]
    }
    manifest = json.loads(contents.pop("_manifest.json"))
    return contents, [entry["meta"]["sha256"] for entry in manifest["entries"]]


def test_one_core_and_two_write_identical_files_whatever_the_order_of_rows(
    s3: Any, s3_endpoint: str, bucket: str
) -> None:
    for master, order, prefix in (("local[1]", "forward", "one"), ("local[2]", "backward", "two")):
        location = f"s3://{bucket}/{prefix}"
        arguments = [master, order, s3_endpoint, location]
        subprocess.run([sys.executable, str(SCRIPT), *arguments], check=True)
    one, one_sums = exported(s3, bucket, "one/")
    two, two_sums = exported(s3, bucket, "two/")
    assert one == two
    assert one_sums == two_sums
    assert len(one) > 3  # several files in a part, so that rolling over is compared too
    rows = b"".join(body.split(b"\n", 1)[1] for body in one.values()).splitlines()
    assert len(rows) == 24000
    for zero in (b"0,{0}", b"-0,{0}", b"0,{-0}", b"-0,{-0}"):
        assert sum(row.startswith(b"1,same,%s," % zero) for row in rows) == 1000
