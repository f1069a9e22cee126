"""A real Spark session and a real S3 server on loopback, one of each for the whole run."""

import functools
import os
import sys
import threading

import boto3
import freezegun
import pytest
import spark_servers
from botocore.config import Config
from dbt_common.behavior_flags import BehaviorFlagRendered
from moto.s3.responses import S3Response
from moto.server import ThreadedMotoServer
from support.s3 import real_stores
from support.s3.real_stores import STORE, running
from support.spark.native import native_parameters
from support.spark.table_formats import table_parameters

# gRPC reckons its deadlines by the clock, which a test of dbt's stops.
freezegun.configure(extend_ignore_list=["grpc"])

KEYS = {
    "access_key_id": "AKIAMZS3TESTKEY00001",
    "secret_access_key": "mzs3-test-secret-4f1d2c",
    "session_token": "mzs3-test-session-token-77aa",
}
if STORE is not None:  # which knows its own keys alone, and no STS
    KEYS = {
        "access_key_id": real_stores.ACCESS_KEY_ID,
        "secret_access_key": real_stores.SECRET_ACCESS_KEY,
    }

# Of every JVM that tests start: they run much code a few times, so that the second compiler costs
# more than it gains. Without it a JVM reserves 48 MB for compiled code, not 240; Spark fills them,
# and a scheduler that finds them full stops Spark.
os.environ["SPARK_SUBMIT_OPTS"] = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
)

# What a small query costs is mostly Hive's metastore and code that is generated for it. Without
# that code tests take a sixth less; without either, many small queries take a third less. The slow
# tests have both.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
LIGHT = {"spark.sql.catalogImplementation": "in-memory", **INTERPRETED}


@pytest.fixture(scope="session", autouse=True)
def behavior_flags_without_a_source():
    """For each flag of each command dbt inspects the whole stack, which pytest makes deep: 1 s."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            BehaviorFlagRendered, "_default_source", staticmethod(lambda: ""), raising=False
        )
        yield


@pytest.fixture(scope="session")
def writes_one_by_one():
    """moto checks a condition and writes in two steps; S3 does both as one.

    A request's body has been read by then, so that a slow one keeps no other waiting.
    """
    lock = threading.RLock()

    def locked(write):
        @functools.wraps(write)
        def alone(*arguments, **named):
            with lock:
                return write(*arguments, **named)

        return alone

    with pytest.MonkeyPatch.context() as patch:
        for name in (
            "put_object",
            "delete_object",
            "_key_response_post",
            "abort_multipart_upload",
        ):
            patch.setattr(S3Response, name, locked(getattr(S3Response, name)))
        yield


@pytest.fixture(scope="session")
def s3_endpoint(tmp_path_factory, writes_one_by_one):
    """The URL of an empty S3 server; STS answers there too, but for a real store."""
    if STORE is not None:
        with running(STORE, tmp_path_factory.mktemp("store")) as url:
            yield url
        return
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="session")
def aws_connection(s3_endpoint):
    """An entry of `aws_connections` for the server."""
    return {
        "region": "us-east-1",
        "endpoint": s3_endpoint,
        "addressing_style": "path",
        **KEYS,
    }


@pytest.fixture(scope="session")
def s3(aws_connection):
    """A boto3 client for the server."""
    return boto3.client(
        "s3",
        endpoint_url=aws_connection["endpoint"],
        region_name=aws_connection["region"],
        **{f"aws_{name}": value for name, value in KEYS.items()},
        config=Config(s3={"addressing_style": "path"}),
    )


@pytest.fixture(scope="session")
def spark_parameters(tmp_path_factory):
    """The parameters of the one Spark session; small, quiet, its tables in a folder of its own.

    With MZS3_LIGHT_SPARK=1 in the environment, LIGHT too; with MZS3_INTERPRETED=1, INTERPRETED.
    """
    home = tmp_path_factory.mktemp("spark")
    return {
        "spark.master": "local[2]",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.local.dir": str(home / "local"),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
        **table_parameters(home),
        **native_parameters(),
        **(LIGHT if os.environ.get("MZS3_LIGHT_SPARK") else {}),
        **(INTERPRETED if os.environ.get("MZS3_INTERPRETED") else {}),
    }


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    if os.environ.get("MZS3_CONNECT"):
        reason = "of a Spark in dbt's process, or of what it alone tells"
        for item in items:
            if item.get_closest_marker("in_process"):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def connect_url(spark_parameters, tmp_path_factory):
    """The URL of a Spark Connect server with these parameters, for the whole run."""
    folder = tmp_path_factory.mktemp("connect")
    metastore = f"jdbc:derby:{folder}/metastore;create=true"
    settings = {
        **spark_parameters,
        "spark.log.level": "INFO",
        "spark.ui.enabled": "true",
        # As a session has it: tables have an owner there.
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": metastore,
    }
    python = {"PYSPARK_PYTHON": sys.executable}  # models in Python use what this one has
    with spark_servers.connect_server(folder, settings, python) as server:
        yield server.url


@pytest.fixture(scope="class")
def dbt_profile_target(request, spark_parameters, aws_connection):
    """The profile's output; dbt's fixtures add the schema. With MZS3_CONNECT=1 in the environment,
    all that runs dbt does so over Spark Connect."""
    method = {"method": "session"}
    if os.environ.get("MZS3_CONNECT"):
        method = {"method": "connect", "host": request.getfixturevalue("connect_url")}
    return {
        "type": "mzs3",
        **method,
        "threads": 4,
        "server_side_parameters": dict(spark_parameters),
        "aws_connections": {"default": dict(aws_connection)},
    }
