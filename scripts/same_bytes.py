"""Compare what two commits write: exports, manifests, shards and the ledger of a source.

    .venv/bin/python scripts/same_bytes.py HEAD~1 HEAD
    .venv-formats/bin/python scripts/same_bytes.py HEAD HEAD native  # the second one with Comet

Each commit's package runs the same project twice, through dbt, against an S3 of its own. Objects
are compared byte by byte. What differs in every run is left out first: times and ids in names and
documents, and in shards the times of rows, which also say which part a row goes to.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3
import pyarrow.parquet as pq
import yaml
from moto.server import ThreadedMotoServer

ROOT = Path(__file__).resolve().parent.parent
BUCKET = "same-bytes"
NESTED = "array(id, null) as a, map('k', text) as m, named_struct('a', id, 'b', text) as s"
EXPORTS: dict[str, dict[str, Any]] = {
    "csv": {"parts": 3},
    "csv_overwritten": {"on_existing": "overwrite", "header": True},
    "csv_many_files": {"parts": 2, "max_file_size": "20 kB", "compression": "gzip"},
    "csv_dialect": {"delimiter": ";", "null": "NULL", "force_quote": "*", "parts": 1},
    "csv_single": {"single_file": "all.csv", "compression": "zstd"},
    "csv_folders": {"partition_by": ["flag", "day"], "parts": 2},
    "parquet": {"format": "parquet", "parts": 2},
    "parquet_folders": {"format": "parquet", "compression": "zstd", "partition_by": ["flag"]},
}
VALUES = """
select id, cast(id * 7 % 101 as int) as small, id / 3 as ratio, cast(id / 7 as float) as narrow,
  cast(id as decimal(20, 4)) / 3 as amount, id % 2 = 0 as flag,
  date_add(date'2020-02-27', cast(id % 3 as int)) as day,
  timestamp_micros(id * 86400000123) as at,
  case id % 5 when 0 then null when 1 then '' when 2 then 'a "quoted", text'
    when 3 then 'two\\nlines' else concat('é', id) end as text,
  cast(concat('x', id) as binary) as bytes
from range(2000 + {{ var('more') }})
"""
LEDGER = """
select object, size, phase, state, rows, rejects, error, hides from raw.orders__ledger
"""


def main(base: str, head: str, target: str = "") -> int:
    """Run both commits; 0 if they wrote the same, and a line for each object that differs."""
    with tempfile.TemporaryDirectory() as folder:
        written = [
            _written_by(commit, Path(folder) / side, parameters)
            for side, commit, parameters in (
                ("base", base, {}),
                ("head", head, _comet() if target == "native" else {}),
            )
        ]
    differing = [
        key
        for key in sorted(written[0].keys() | written[1].keys())
        if written[0].get(key) != written[1].get(key)
    ]
    for key in differing:
        print(f"differs: {key}\n  {base}: {written[0].get(key)}\n  {head}: {written[1].get(key)}")
    print(f"{len(written[0])} objects of {base}, {len(differing)} differ in {head}")
    return 1 if differing or not written[0] else 0


def _comet() -> dict[str, str]:
    """Spark's parameters for Comet, as the sample project has them."""
    text = (ROOT / "sample_project/profiles.yml").read_text()
    outputs = yaml.safe_load(text)["flights"]["outputs"]
    parameters: dict[str, str] = outputs["native"]["server_side_parameters"]
    jar = str(Path(sys.prefix) / "comet.jar")
    del parameters["spark.sql.warehouse.dir"]
    return {name: jar if "COMET_JAR" in value else value for name, value in parameters.items()}


def _written_by(commit: str, folder: Path, parameters: Mapping[str, str]) -> dict[str, object]:
    package = folder / "package"
    package.mkdir(parents=True)
    archive = subprocess.run(
        ["git", "archive", commit, "dbt"], cwd=ROOT, check=True, capture_output=True
    )
    subprocess.run(["tar", "-x", "-C", str(package)], input=archive.stdout, check=True)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="an-id",
            aws_secret_access_key="a-secret",
        )
        # The stand-in keeps its buckets for as long as the process lives.
        for bucket in client.list_buckets()["Buckets"]:
            _empty(client, bucket["Name"])
        client.create_bucket(Bucket=BUCKET)
        project = _project(folder / "project", endpoint, parameters)
        for more in (0, 50):
            lines = "".join(f"{number},text {number}\n" for number in range(more + 10))
            client.put_object(
                Bucket=BUCKET, Key=f"in/{more}.csv", Body=f"id,text\n{lines}".encode()
            )
            _dbt(["run", "--vars", json.dumps({"more": more})], project, package)
        objects = {
            item["Key"]: client.get_object(Bucket=BUCKET, Key=item["Key"])["Body"].read()
            for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
            for item in page["Contents"]
        }
        written = {
            _without_times(key): _comparable(data, key)
            for key, data in objects.items()
            if "/batches/" not in key
        }
        return written | _batches({key: objects[key] for key in objects if "/batches/" in key})
    finally:
        server.stop()


def _empty(client: Any, bucket: str) -> None:
    for item in client.list_objects_v2(Bucket=bucket).get("Contents", []):
        client.delete_object(Bucket=bucket, Key=item["Key"])
    client.delete_bucket(Bucket=bucket)


def _project(folder: Path, endpoint: str, parameters: Mapping[str, str]) -> Path:
    connection = {
        "endpoint": endpoint,
        "addressing_style": "path",
        "region": "us-east-1",
        "access_key_id": "an-id",
        "secret_access_key": "a-secret",
    }
    profile = {
        "type": "mzs3",
        "method": "session",
        "schema": "out",
        "threads": 1,
        "server_side_parameters": {
            "spark.master": "local[2]",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            **parameters,
        },
        "aws_connections": {"default": connection},
    }
    source = {
        "name": "raw",
        "tables": [
            {
                "name": "orders",
                "external": {"type": "s3_csv_source", "location": f"s3://{BUCKET}/in/"},
                "columns": [
                    {"name": "id", "data_type": "bigint"},
                    {"name": "text", "data_type": "string"},
                ],
            }
        ],
    }
    files: dict[str, str] = {
        "dbt_project.yml": json.dumps({"name": "same", "profile": "same", "vars": {"more": 0}}),
        "profiles.yml": json.dumps({"same": {"target": "it", "outputs": {"it": profile}}}),
        "models/sources.yml": json.dumps({"sources": [source]}),
        "models/rows.sql": "{{ config(materialized='table', file_format='parquet') }}" + VALUES,
        "models/orders_copy.sql": "select * from {{ source('raw', 'orders') }}",
        "models/ledger.sql": _export(
            "ledger", {"parts": 1}, "-- depends_on: {{ ref('orders_copy') }}" + LEDGER
        ),
        "models/orders.sql": _export(
            "orders", {"parts": 1}, "select id, text from {{ ref('orders_copy') }}"
        ),
    }
    for name, options in EXPORTS.items():
        nested = "" if "parquet" in name else f", {NESTED}"
        files[f"models/{name}.sql"] = _export(
            name, options, f"select *{nested} from {{{{ ref('rows') }}}}"
        )
    for encoding in ("dual", "structured", "codec"):
        files[f"models/shard_{encoding}.sql"] = _configured(
            {
                "materialized": "persist_shard",
                "location": f"s3://{BUCKET}/shard/{encoding}",
                "encoding": encoding,
                "parts": 2,
            },
            "select * from {{ ref('rows') }} where id % 3 > 0",
        )
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def _export(name: str, options: Mapping[str, Any], query: str) -> str:
    location = f"s3://{BUCKET}/out/{name}"
    if options.get("on_existing") != "overwrite":
        location += "/{{ var('more') }}"
    return _configured({"materialized": "copy_to_s3", "location": location, **options}, query)


def _configured(config: Mapping[str, Any], query: str) -> str:
    arguments = ", ".join(
        f"{name}={json.dumps(value) if not isinstance(value, bool) else value}"
        for name, value in config.items()
    )
    arguments = arguments.replace("{{ var('more') }}\"", "\" ~ var('more')")
    return f"{{{{ config({arguments}) }}}}\n{query}"


def _dbt(arguments: list[str], project: Path, package: Path) -> None:
    subprocess.run(
        [
            sys.executable,
            "-m",
            "dbt.cli.main",
            "--quiet",
            *arguments,
            "--project-dir",
            str(project),
            "--profiles-dir",
            str(project),
        ],
        cwd=project,
        check=True,
        env={**os.environ, "PYTHONPATH": str(package)},
    )


def _comparable(data: bytes, key: str) -> object:
    """The object's hash; of a document of JSON its text, without what differs in every run."""
    if not key.endswith(".json"):
        return hashlib.sha256(data).hexdigest()
    document = json.loads(data)
    for batch in document.get("batches", ()):
        del batch["files"]
    return _without_times(json.dumps(document, sort_keys=True))


def _batches(files: Mapping[str, bytes]) -> dict[str, object]:
    """For each batch of a shard its schema, and a hash of its rows without their times."""
    folders: dict[str, dict[str, list[Any]]] = {}
    for key in sorted(files):
        shard, batch = key.split("/batches/")
        folders.setdefault(shard, {}).setdefault(batch.split("/")[0], []).append(
            pq.read_table(io.BytesIO(files[key]))
        )
    written: dict[str, object] = {}
    for shard, batches in folders.items():
        for number, tables in enumerate(batches.values()):
            rows = sorted(
                repr(row) for table in tables for row in table.drop_columns(["t"]).to_pylist()
            )
            written[f"{shard}, batch {number}"] = (
                _without_times(tables[0].schema.to_string(truncate_metadata=False)),
                hashlib.sha256("\n".join(rows).encode()).hexdigest(),
            )
    return written


def _without_times(text: str) -> str:
    text = re.sub(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", "<id>", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*(Z|[+-]\d\d:?\d\d)?", "<time>", text)
    return re.sub(r"\b1[789]\d{11}\b", "<ms>", text)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
