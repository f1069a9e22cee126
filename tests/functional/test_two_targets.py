"""Several invocations of dbt in one process, and dbt in a program that has a Spark of its own."""

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

pytestmark = [pytest.mark.slow, pytest.mark.in_process]

RUN = """
import os, sys
from dbt.cli.main import dbtRunner

def run(target, project, *arguments, callbacks=()):
    os.chdir(project)
    where = ["--project-dir", project, "--profiles-dir", profiles, "--target", target]
    done = dbtRunner(callbacks=[*callbacks]).invoke(["run", *where, *arguments])
    wrong = [str(done.exception)] if done.exception else []
    print(target, done.success, *wrong, *(one.message for one in done.result or ()), flush=True)

profiles, one, two = sys.argv[1:]
"""

ONE_AFTER_ANOTHER = """
run("dev", one)
run("other", one)
run("placed", two)
run("dev", one, "--select", "again")
"""

AT_ONCE = """
import threading
started, ended = threading.Event(), threading.Event()

def hold(event):
    if event.info.name == "NodeStart":
        started.set()
        ended.wait(120)

first = threading.Thread(target=run, args=("dev", one), kwargs={"callbacks": [hold]})
first.start()
started.wait(120)
run("other", one)
ended.set()
first.join()
"""

OF_THE_HOST = """
from pyspark.sql import SparkSession
host = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config(
    "spark.sql.warehouse.dir", os.path.join(one, "host")
).config("spark.sql.catalogImplementation", "in-memory").getOrCreate()
run("dev", one)
run("host", one)
print("host has", host.sql("select target from main.rows").collect()[0][0])
print("host's own", host.conf.get("spark.sql.shuffle.partitions"))
"""

HELD = """
from dbt.adapters.mzs3.spark.session import isolated_session
run("dev", one)
settings = {"spark.master": "local[1]", "spark.ui.enabled": "false"}
held = isolated_session({**settings, "spark.sql.warehouse.dir": os.path.join(one, "held")})
run("dev", one)
del held
run("dev", one)
"""

AFTER_FAILURES = """
from pyspark import SparkContext
from pyspark.sql import SparkSession
run("broken", one)
run("dev", one)
SparkSession._instantiatedSession.stop()
run("other", one)
SparkContext._gateway.proc.kill()
SparkContext._gateway.proc.wait()
run("dev", one, "--select", "again")
"""

BESIDE_CONNECT = """
run("server", one)
run("dev", one)
run("server", one, "--select", "again")
"""

RUNS = ("broke", "dev T", "dev F", "other", "serve")
CATALOG = {
    "spark.sql.catalog.beside": (
        "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
    ),
    "spark.sql.catalog.beside.url": "jdbc:derby:memory:beside;create=true",
    "spark.sql.catalog.beside.driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
}
AGAIN = """
{% if target.name == 'host' %} {% do run_query('show tables in beside.app') %} {% endif %}
select * from {{ ref('rows') }}
"""
ROWS = "{{ config(materialized='table') }} select '{{ target.name }} {{ project_name }}' as target"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The profiles and two projects."""
    profiles, *projects = (tmp_path_factory.mktemp(name) for name in ("profiles", "one", "two"))
    small = {"spark.master": "local[1]", "spark.ui.enabled": "false"}
    first, second = (
        {**small, "spark.sql.warehouse.dir": f"{projects[0]}/{name}/warehouse"}
        for name in ("dev", "other")
    )
    settings = {
        "dev": first,
        "other": {**second, "spark.master": "local[2]", "spark.driver.memory": "700m"},
        "placed": small,
        "broken": {
            **first,
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"{projects[0]}/nowhere",
        },
        "host": {**CATALOG, "spark.sql.shuffle.partitions": 3},
    }
    outputs = {
        name: {
            "type": "mzs3",
            "method": "session",
            "schema": "main",
            "threads": 1,
            "server_side_parameters": parameters,
        }
        for name, parameters in settings.items()
    }
    outputs["server"] = {
        **{key: value for key, value in outputs["dev"].items() if "parameters" not in key},
        "method": "connect",
        "host": "{{ env_var('CONNECT_URL', 'sc://none.example') }}",
    }
    text = yaml.safe_dump({"acme": {"target": "dev", "outputs": outputs}})
    (profiles / "profiles.yml").write_text(text)
    for project in projects:
        (project / "models").mkdir()
        about = {"name": project.name.rstrip("0"), "profile": "acme", "version": "1.0"}
        (project / "dbt_project.yml").write_text(yaml.safe_dump(about))
        (project / "models" / "rows.sql").write_text(ROWS)
        (project / "models" / "again.sql").write_text(AGAIN)
    return [profiles, *projects]


@pytest.fixture(scope="module")
def console(folders):
    """What a program prints, in a process of its own."""

    def console(code):
        done = subprocess.run(
            [sys.executable, "-c", RUN + code, *map(str, folders)],
            cwd=folders[0],
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert "Traceback" not in done.stdout
        return done.stdout + done.stderr

    return console


def rows_in(warehouse: Path):
    return [
        row["target"]
        for file in sorted((warehouse / "main.db" / "rows").glob("*.parquet"))
        for row in pq.read_table(file).to_pylist()
    ]


def test_each_of_several_invocations_writes_into_its_own_warehouse(console, folders):
    _, one, two = folders

    said = console(ONE_AFTER_ANOTHER)

    assert said.count("True OK") == 4, said
    assert rows_in(one / "dev" / "warehouse") == ["dev one"]
    assert rows_in(one / "other" / "warehouse") == ["other one"]
    assert rows_in(two / ".spark" / "warehouse") == ["placed two"]


def test_of_two_invocations_at_once_the_second_is_refused(console, folders):
    _, one, _ = folders

    said = console(AT_ONCE).splitlines()

    told = [line for line in said if line.startswith(("dev", "other"))]
    assert [line.split()[:2] for line in told] == [["other", "False"], ["dev", "True"]], said
    assert "another invocation of dbt runs in this process" in "".join(said)
    assert rows_in(one / "dev" / "warehouse") == ["dev one"]


def test_spark_that_the_host_program_has_started_is_never_stopped(console, folders):
    _, one, _ = folders

    said = console(OF_THE_HOST)

    told = said.splitlines()
    assert [line for line in told if line.startswith("dev False")], said
    assert f"spark.sql.warehouse.dir: file:{one}/host now, {one}/dev/warehouse wanted" in said
    assert {"host True OK OK", "host has host one", "host's own 200"} <= {*told}, said


def test_spark_is_not_stopped_while_another_holds_a_session(console, folders):
    said = console(HELD)

    told = [line for line in said.splitlines() if line.startswith("dev")]
    assert [line.split()[1] for line in told] == ["True", "False", "True"], said


def test_spark_starts_after_one_that_could_not_was_stopped_or_has_died(console, folders):
    _, one, _ = folders

    said = console(AFTER_FAILURES)

    told = [line.split()[:2] for line in said.splitlines() if line[:5] in RUNS]
    outcomes = [["broken", "False"], ["dev", "True"], ["other", "True"], ["dev", "True"]]
    assert told == outcomes, said
    assert "nowhere" in said  # as the first one's error
    assert rows_in(one / "other" / "warehouse") == ["other one"]


def test_a_server_of_spark_connect_and_a_spark_in_the_process_take_turns(
    console, folders, connect_url, monkeypatch
):
    _, one, _ = folders
    monkeypatch.setenv("CONNECT_URL", connect_url)

    said = console(BESIDE_CONNECT)

    told = [line.split()[:2] for line in said.splitlines() if line[:5] in RUNS]
    assert told == [["server", "True"], ["dev", "True"], ["server", "True"]], said
    assert rows_in(one / "dev" / "warehouse") == ["dev one"]
