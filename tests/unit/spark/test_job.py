import subprocess
import sys

import pytest
from pyspark import TaskContext, cloudpickle

from dbt.adapters.mzs3 import worker
from dbt.adapters.mzs3.errors import ConfigError, SparkJobError
from dbt.adapters.mzs3.formats.write import FORMATS
from dbt.adapters.mzs3.formats.write.format import ExportedColumn
from dbt.adapters.mzs3.spark import job
from dbt.adapters.mzs3.spark.job import run_job, shipped
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.upload.spec import WriteSpec
from dbt.adapters.mzs3.upload.task import write_parts

SPARK = object()


def test_a_job_sees_spark_and_what_else_it_is_given():
    code = "def double():\n    return (spark, as_of * 2)\nresult = double()\n"

    assert run_job(SPARK, code, "models/a.py", {"as_of": 21}) == (SPARK, 42)


def test_a_job_without_a_result_has_none():
    assert run_job(SPARK, "x = 1", "models/a.py", {}) is None


def test_an_error_names_the_line_and_shows_it():
    code = "def model(dbt, session):\n    return 1 / 0\n\nmodel(None, spark)\n"

    with pytest.raises(SparkJobError) as caught:
        run_job(SPARK, code, "target/run/models/a.py", {})

    assert str(caught.value) == (
        "ZeroDivisionError: division by zero\n  in target/run/models/a.py, line 2: return 1 / 0"
    )


def test_a_syntax_error_names_its_line():
    with pytest.raises(SparkJobError, match=r'(?s)File "models/a\.py", line 2.*SyntaxError'):
        run_job(SPARK, "x = 1\nx = = 2\n", "models/a.py", {})


def test_an_error_of_our_own_passes_through():
    code = "raise error\n"
    error = ConfigError("model.a", ["header is not a flag"])

    with pytest.raises(ConfigError) as caught:
        run_job(SPARK, code, "models/a.py", {"error": error})

    assert caught.value is error


WORKER = """
import pickle, sys

class WithoutOurs:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "dbt":
            raise ImportError(name)

sys.meta_path.insert(0, WithoutOurs())
with open(sys.argv[1], "rb") as file:
    functions = pickle.load(file)
found = [function(iter([])) for function in functions]
state = sys.modules["_dbt_mzs3_worker_state"].state
print([one.gi_frame.f_locals["spec"].location.bucket for one in found], len(state["code"]))
print([list(one)[0].to_pydict() for one in found])
"""


def write_spec(bucket):
    connection = AwsConnection(access_key_id="a", secret_access_key="b")
    written = FORMATS["csv"]()
    return WriteSpec(
        connection, S3Location(bucket, "p/"), (ExportedColumn("a"),), written, 100, 100, 100
    )


def test_what_is_shipped_runs_where_the_package_is_not(tmp_path):
    functions = [shipped(write_parts, write_spec(bucket), TaskContext.get) for bucket in "ab"]
    (tmp_path / "functions").write_bytes(cloudpickle.dumps(functions))
    command = [sys.executable, "-c", WORKER, tmp_path / "functions"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    report = {"report": ['{"stage": null, "refuted": null, "sums": [0, 0]}']}
    # Each with what is its own, and the code of both unpickled once.
    assert told.stdout == f"['a', 'b'] 1\n{[report, report]}\n"


@pytest.fixture
def freezes(monkeypatch):
    """The times at which survivors are frozen; the code is not unpickled by value, as it would
    take the place of what is in this process."""
    monkeypatch.setattr(job, "_code_of", lambda names: cloudpickle.dumps({}))
    found, freeze = [], worker.gc.freeze

    def counted():
        found.append(worker.time.monotonic())
        freeze()

    monkeypatch.setattr(worker.gc, "freeze", counted)
    yield found
    worker.gc.unfreeze()


def test_a_worker_collects_once_a_minute_what_has_survived_a_task(monkeypatch, freezes):
    run = shipped(write_parts, write_spec("a"), TaskContext.get)
    clock = [1000.0]
    monkeypatch.setattr(worker.time, "monotonic", lambda: clock[0])
    left_out = []
    for seconds in (0, 1, 50, 10, 1):
        clock[0] += seconds
        run(iter([]))
        left_out.append(worker.gc.get_freeze_count() > 0)
    assert left_out == [False, True, True, False, True]
    assert freezes == [1001.0, 1062.0]  # not what comes and goes between the full collections


def test_the_collector_of_workers_can_be_left_alone(monkeypatch, freezes):
    monkeypatch.setenv(job.GC_FREEZE, "0")
    run = shipped(write_parts, write_spec("a"), TaskContext.get)
    for _ in range(3):
        run(iter([]))
    assert (freezes, worker.gc.get_freeze_count()) == ([], 0)


def test_code_is_pickled_once(monkeypatch):
    shipped(write_parts, write_spec("a"), TaskContext.get)

    def again(*_):
        raise AssertionError("pickled by value again")

    monkeypatch.setattr(job.cloudpickle, "dumps", again)
    shipped(write_parts, write_spec("b"), TaskContext.get)
