"""A Connect server keeps nothing of a run that has ended, and a run ends with its server."""

from __future__ import annotations

import json
import os
import re
import signal
import time
import urllib.request
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest
import spark_servers
from support.spark.cluster_project import RUN, Project, Roads, start_connect
from support.spark.standalone import HOSTS

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(1800)]

_PATIENCE_S = 120
VOID = """
sources:
  - name: void
    schema: "{{ target.schema }}"
    tables:
      - name: nothing
        external: {type: s3_csv_source, location: "s3://%s/none/", header: [id]}
"""


def sessions_on(server: spark_servers.Server) -> int:
    """How many sessions the page of the server says are online."""
    with urllib.request.urlopen(f"{server.page}/connect/", timeout=60) as answer:
        page = re.sub(r"\s+", " ", answer.read().decode())
    found = re.search(r"(\d+) session\(s\) are online", page)
    assert found is not None, page
    return int(found[1])


def test_after_a_build_no_session_is_left_and_dbt_ends_at_once(
    on_connect: Project, connect: spark_servers.Server
) -> None:
    process = on_connect.start("--log-format", "json", "build")
    assert process.stdout is not None
    lines = [line for line in process.stdout if line.startswith("{")]
    assert process.wait(_PATIENCE_S) == 0, "".join(lines)
    ended = datetime.now(timezone.utc)
    told = [json.loads(line)["info"] for line in lines]
    [done] = [info for info in told if info["msg"].startswith("Done.")]
    assert (ended - datetime.fromisoformat(done["ts"].replace("Z", "+00:00"))).total_seconds() < 3
    assert sessions_on(connect) == 0


def test_sources_are_read_that_have_nothing_new_or_nothing_at_all(on_connect: Project) -> None:
    models, void = on_connect.folder / "models", VOID.replace("%s", on_connect.bucket)
    (models / "void.yml").write_text(void)
    of_nothing = "{{ config(materialized='table') }} select * from {{ source('void', 'nothing') }}"
    (models / "of_nothing.sql").write_text(of_nothing)
    for _ in range(2):
        code, console = on_connect.run("ingested", "of_nothing")
        assert code == 0, console
    on_connect.require_right("ingested")


@pytest.mark.parametrize("model", RUN)
def test_a_run_whose_server_is_killed_ends_with_one_error(
    model: str, project: Callable[..., Project], roads: Roads, tmp_path: Path
) -> None:
    died_at: list[float] = []
    with start_connect(tmp_path / "first", roads.workers[HOSTS[0]].endpoint) as server:

        def kill(*_: str) -> None:
            os.killpg(server.pid, signal.SIGKILL)
            died_at.append(time.monotonic())

        on_it = project({"method": "connect", "host": server.url})
        died = roads.when_under_way(kill, [model])
        code, console = on_it.run(model)
    assert died == {model}, console
    assert code == 1, console
    assert time.monotonic() - died_at[0] < _PATIENCE_S
    _, _, failures = console.partition("Completed with 1 error")
    assert failures.count("the Spark Connect server does not answer") == 1, console
    for frames in ("Traceback", "grpc", "  at org."):
        assert frames not in console
    with start_connect(tmp_path / "second", roads.driver.endpoint) as server:
        on_it.use(host=server.url)
        code, console = on_it.run(model)
        assert code == 0, console
        on_it.require_right(model)
