"""The files of a batch: how many, what is in which, and that they depend on nothing else."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.processes import wait_until
from support.s3.faulty import FaultyS3, Request, connection_to
from support.s3.opened import state_of

from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.shard import rows as shard_rows
from dbt.adapters.mzs3.shard.write import diff
from dbt.adapters.mzs3.shard.write.job import persist_shard
from dbt.adapters.mzs3.spark.session import LocalScheduler
from dbt.adapters.mzs3.store.location import parse_location
from dbt.adapters.mzs3.upload import job as upload_job

pytestmark = pytest.mark.spark

BEFORE = "select id, 1 as price from range(100)"
AFTER = "select id, if(id % 10 = 0, 2, 1) as price from range(100)"


@pytest.fixture
def last_bodies(s3: Any, location: str) -> Callable[[], list[bytes]]:
    """The files of the shard's last batch."""

    def read() -> list[bytes]:
        place = parse_location(location)
        found = state_of(s3, place).read()
        assert found is not None
        keys = [place.key(file.name) for file in found.state.batches[-1].files]
        return [s3.get_object(Bucket=place.bucket, Key=key)["Body"].read() for key in keys]

    return read


@pytest.fixture
def last_files(last_bodies: Callable[[], list[bytes]]) -> Callable[[], list[pa.Table]]:
    """The same as tables."""
    return lambda: [pq.read_table(io.BytesIO(body)) for body in last_bodies()]


@pytest.mark.slow
def test_few_changes_are_one_file(
    persist: Callable[..., Any], last_files: Callable[[], list[pa.Table]]
) -> None:
    persist(BEFORE, 10, parts=None)
    assert persist(AFTER, 20, parts=None).files == 1
    [file] = last_files()
    assert file["d"].to_pylist() == [-1, 1] * 10
    ids = [row["0"] for row in file["k_s"].to_pylist()]
    assert ids == [id for id in range(0, 100, 10) for _ in range(2)]


def test_many_changes_are_spread(
    persist: Callable[..., Any],
    rows: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shard_rows, "ROWS_OF_A_PART", 4)
    for module in (shard_rows, diff):
        monkeypatch.setattr(module, "default_parallelism", lambda _: 7)
    persist(BEFORE, 10, parts=None)
    assert persist(AFTER, 20, parts=None).files == 5
    assert rows() == sorted(((i, 1 + (i % 10 == 0)) for i in range(100)), key=repr)


def test_the_number_of_parts_may_be_given(persist: Callable[..., Any]) -> None:
    persist(BEFORE, 10, parts=3)
    assert persist(AFTER, 20, parts=3).files == 3


def test_rows_of_one_key_are_beside_each_other_too(
    persist: Callable[..., Any], last_files: Callable[[], list[pa.Table]]
) -> None:
    for moment, price in ((10, 1), (20, 2)):
        query = f"select id, {price} as price, 'a' as kind from range(4)"
        persist(query, moment, parts=None, sort_by=["kind"])
    [file] = last_files()
    assert file["d"].to_pylist() == [-1, 1] * 4


@pytest.fixture
def computed(spark: Any) -> Callable[[], int]:
    """How often `computed(id)` has been called in queries so far."""
    calls = spark.sparkContext.accumulator(0)

    def call(id: int) -> int:
        calls.add(1)
        return id

    spark.udf.register("computed", call, "bigint")
    return lambda: int(calls.value)


CHANGED = "select computed(id) as id, 2 as price from range(100)"
OF_MANY_TYPES = (
    "select {id} as id, {price} as price, cast({price} as double) as ratio, "
    "nullif(cast(id as string), '7') as name, array(cast(id as double), null) as ratios "
    "from range(100)"
)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (BEFORE, CHANGED),
        (OF_MANY_TYPES.format(id="id", price=1), OF_MANY_TYPES.format(id="computed(id)", price=2)),
    ],
)
def test_changes_are_counted_and_written_by_one_query(
    persist: Callable[..., Any], computed: Callable[[], int], spark: Any, first: str, second: str
) -> None:
    persist(first, 10, parts=None)
    held = spark.sparkContext._jsc.sc().getPersistentRDDs
    before = held().size()  # of tests with the same Spark
    persist(second, 20, parts=None)
    assert (computed(), held().size()) == (100, before)


def test_a_second_attempt_computes_all_changes_anew(
    persist: Callable[..., Any],
    computed: Callable[[], int],
    rows: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    persist(BEFORE, 10, parts=None)
    steady = iter([False, True])
    monkeypatch.setattr(upload_job, "wrote_in_one_attempt", lambda *_: next(steady))
    persist(CHANGED, 20, parts=None)
    # What is left of the first one may be of other rows.
    assert computed() == 200
    assert rows() == sorted(((id, 2) for id in range(100)), key=repr)


def test_files_are_the_same_whether_their_number_is_given_or_counted(
    persist: Callable[..., Any],
    last_bodies: Callable[[], list[bytes]],
    s3: Any,
    location: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shard_rows, "ROWS_OF_A_PART", 6)
    for module in (shard_rows, diff):
        monkeypatch.setattr(module, "default_parallelism", lambda _: 9)
    found = []
    for number in (None, 3):
        persist(BEFORE, 10, parts=number)
        persist(AFTER, 20, parts=number)
        found.append(last_bodies())
        place = parse_location(location)
        s3.delete_object(Bucket=place.bucket, Key=place.key("_shard.json"))
    assert len(found[0]) == 3
    assert found[0] == found[1]


def test_a_shard_of_few_rows_is_compacted_into_one_file(
    persist: Callable[..., Any], compact: Callable[..., Any]
) -> None:
    for moment, query in ((10, BEFORE), (20, AFTER)):
        persist(query, moment, parts=2)
    assert len(compact(since=20, parts=None).new.files) == 1


@pytest.mark.slow
def test_files_end_where_they_are_told_to(
    persist: Callable[..., Any], compact: Callable[..., Any], rows: Callable[..., Any]
) -> None:
    query = "select id, sha2(cast(id as string), 512) as noise from range(20000)"
    one = persist(query, 10, parts=1)
    assert one.files == 1
    limit = one.bytes // 3
    many = persist(query, 20, parts=1, mode="append", max_file_size=limit)
    assert 3 <= many.files <= 6
    new = compact(since=20, parts=1, max_file_size=limit).new
    assert len(new.files) >= 3
    assert max(file.size for file in new.files) < 1.3 * limit
    assert len(rows()) == 40_000


@pytest.mark.parametrize("parts", [None, 3])
def test_files_do_not_depend_on_how_spark_cuts_its_input(
    persist: Callable[..., Any],
    last_bodies: Callable[[], list[bytes]],
    s3: Any,
    location: str,
    parts: int | None,
) -> None:
    found = []
    for cut, sign in ((1, 1), (7, -1)):
        # Rows that differ in nothing but the sign of a zero are in one order too. (Of zeros that
        # are literals, Spark's optimizer may take one for the other.)
        zero = f"{sign} * (999 - 2 * id) * 0.0D as zero"
        rows = f"select id % 500 as id, {zero} from range(0, 1000, 1, {cut})"
        query = f"select id * 7919 % 500 as id, zero, id % 3 as n, {{}} as x from ({rows})"
        for moment, x in ((10, "id % 5"), (20, "id % 7")):
            persist(query.format(x), moment, parts=parts)
            found.append(last_bodies())
        place = parse_location(location)
        s3.delete_object(Bucket=place.bucket, Key=place.key("_shard.json"))
    first, second, *again = found
    assert again == [first, second]
    assert len(second) == (parts or 1)


def test_a_model_is_sorted_inside_of_each_file(
    persist: Callable[..., Any], last_files: Callable[[], list[pa.Table]]
) -> None:
    query = "select id, id * 7919 % 1000 as a, cast(id % 7 as string) as b from range(1000)"
    for moment, mode in ((10, "diff"), (20, "append")):
        persist(query, moment, parts=2, sort_by=["b", "a"], mode=mode)
        files = last_files()
        assert len(files) == 2
        for file in files:
            keys = [(row["2"], row["1"]) for row in file["k_s"].to_pylist()]
            assert keys == sorted(keys)


def test_an_upload_that_a_task_opens_long_after_the_failure_of_another_is_aborted(
    spark: Any, s3_endpoint: str, s3: Any, location: str
) -> None:
    """Spark kills the worker of the one task; S3 gets the request to open an upload after that."""
    opened: list[str] = []
    opening, scheduler = threading.Event(), LocalScheduler(spark)

    def stall(request: Request) -> None:
        if request.action == "CreateMultipartUpload" and "part-" in request.key:
            opened.append(request.key)
            if len(opened) == 2:
                opening.set()
                wait_until(lambda: not scheduler.running())
        elif request.action == "UploadPart":
            opening.wait(60)

    with FaultyS3(s3_endpoint) as faulty, pytest.raises(ShardError) as failure:
        faulty.watch, faulty.deny = stall, lambda request: request.action == "UploadPart"
        persist_shard(
            spark,
            "select id from range(100)",
            node="model.test.orders",
            options={"location": location, "parts": 2},
            connections={"default": connection_to(faulty.endpoint)},
            as_of=1,
        )
    assert str(failure.value).endswith("The shard is what it was")
    place = parse_location(location)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=place.bucket)
