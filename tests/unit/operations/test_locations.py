"""What users give a run-operation: every problem in one error, and Spark not started for it."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError
from support.s3.opened import bucket_of

from dbt.adapters.mzs3 import runner
from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.export.report.read import ReportRequest
from dbt.adapters.mzs3.impl import Mzs3Adapter
from dbt.adapters.mzs3.operations import OPERATIONS, locations, sources
from dbt.adapters.mzs3.shard.read.column_bytes import ColumnBytes
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.include.mzs3 import PACKAGE_PATH

SESSION: Any = object()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Grows with each session."""
    sessions: list[Any] = []

    def session_of(_: Any) -> Any:
        sessions.append(SESSION)
        return SESSION

    monkeypatch.setattr(runner, "session_of", session_of)
    return sessions


@pytest.fixture
def adapter(opened: list[Any]) -> Any:
    credentials = SimpleNamespace(
        secrets=[],
        method="session",
        has_session=True,
        runs_jobs=True,
        connections={"default": AwsConnection()},
    )
    return SimpleNamespace(
        config=SimpleNamespace(credentials=credentials),
        connections=SimpleNamespace(exception_handler=lambda _: nullcontext()),
    )


run_operation = Mzs3Adapter.run_operation


def refused(adapter: Any, operation: str, *arguments: Any) -> list[str]:
    with pytest.raises(DbtRuntimeError) as caught:
        run_operation(adapter, operation, *arguments)
    head, *problems = str(caught.value.msg).splitlines()
    noun = "problem" if len(problems) == 1 else "problems"
    assert head.endswith(f" has {len(problems)} {noun} in its configuration:")
    return [problem.removeprefix("  - ") for problem in problems]


def test_every_operation_has_a_macro_of_its_name() -> None:
    macros = [
        path.stem
        for path in (Path(PACKAGE_PATH) / "macros").rglob("*.sql")
        if f"adapter.run_operation('{path.stem}', " in path.read_text()
    ]
    assert sorted(macros) == sorted(OPERATIONS)


def test_a_report_names_all_that_is_wrong_before_spark_starts(
    adapter: Any, opened: list[Any]
) -> None:
    problems = refused(adapter, "copy_report", "lake.", ".", "7")
    assert [problem.split()[0] for problem in problems] == ["schema", "days", "path"]
    assert opened == []


def test_a_path_that_no_system_takes_is_left_to_the_writing() -> None:
    assert ReportRequest.of("s", "a" * 300, 1).path == Path("a" * 300)


def test_an_empty_selection_of_sources_is_refused(adapter: Any) -> None:
    [problem] = refused(adapter, "ingest_s3_sources", [])
    assert problem == "select is empty; leave it out for all sources"


def test_a_report_that_can_be(adapter: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def write(session: Any, request: ReportRequest) -> Path:
        asked.extend([session, request])
        return Path("r.html")

    monkeypatch.setattr(locations, "write_report", write)
    run_operation(adapter, "copy_report", "lake.sales", "r.html", 7)
    assert asked == [SESSION, ReportRequest("lake.sales", Path("r.html"), 7)]


def test_a_report_needs_more_than_sql(adapter: Any) -> None:
    adapter.config.credentials.method = "thrift"
    adapter.config.credentials.runs_jobs = False
    with pytest.raises(DbtRuntimeError, match="copy_report needs more than SQL"):
        run_operation(adapter, "copy_report", "s", "r.html", 7)


@pytest.mark.parametrize(
    ("operation", "queue"), [("verify_copy", []), ("validate_aws_connection", [None])]
)
def test_names_and_locations_are_texts(adapter: Any, operation: str, queue: list[None]) -> None:
    problems = refused(adapter, operation, 5, ["s3://b/x"], *queue)
    assert len(problems) == 2
    assert all("must be a text, not " in problem for problem in problems)


def test_a_location_that_is_none(adapter: Any) -> None:
    assert refused(adapter, "verify_copy", "b/_manifest.json", "lake") == [
        "aws_connection 'lake' is not in the profile; it has default",
        "location must start with s3://, not 'b/_manifest.json'",
    ]


@pytest.mark.parametrize(
    ("select", "names"),
    [(None, None), ("lake", ["lake"]), (("lake.orders", "raw"), ["lake.orders", "raw"])],
)
def test_sources_are_selected_by_a_name_or_a_list(
    adapter: Any, monkeypatch: pytest.MonkeyPatch, select: Any, names: Any
) -> None:
    asked: list[Any] = []
    adapter.get_macro_resolver = dict
    monkeypatch.setattr(sources, "selected_sources", lambda _, chosen: chosen and list(chosen))
    monkeypatch.setattr(sources, "ingest_sources", lambda _, chosen: asked.append(chosen))
    run_operation(adapter, "ingest_s3_sources", select)
    assert asked == [names]


@pytest.mark.parametrize("select", [5, True, 1.5, {"lake": "orders"}])
def test_a_selection_that_is_no_name(adapter: Any, select: Any) -> None:
    assert refused(adapter, "ingest_s3_sources", select) == [
        "select must be a source or a table of one, such as lake or lake.orders, or a list of "
        f"them, not {select!r}"
    ]


def test_every_wrong_name_of_a_selection_is_named(adapter: Any) -> None:
    expected = "each of select must be a source or a table of one, such as lake or lake.orders"
    assert refused(adapter, "ingest_s3_sources", ["lake", 5, None]) == [
        f"{expected}, not 5",
        f"{expected}, not None",
    ]


def test_a_compaction_names_all_that_is_wrong_before_spark_starts(
    adapter: Any, opened: list[Any]
) -> None:
    how = {"since": 20260131, "encoding": "protobuf"}
    problems = refused(adapter, "compact_shard", "orders", "lake", how)
    words = [problem.split()[0] for problem in problems]
    assert words == ["aws_connection", "location", "since", "encoding"]
    assert opened == []


def test_ctrl_c_lets_a_compaction_clean_up_and_say_what_is_left(
    adapter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = []
    result = Future.result

    def result_or_interrupt(self: Any, timeout: float | None = None) -> Any:
        waits.append(True)
        if len(waits) == 1:
            raise KeyboardInterrupt
        return result(self, timeout)

    def compact_shard(_: Any, shard: Any, request: Any, cancelled: threading.Event) -> None:
        assert cancelled.wait(60)
        raise ShardError("nothing is left")

    monkeypatch.setattr(Future, "result", result_or_interrupt)
    monkeypatch.setattr(locations, "compact_shard", compact_shard)
    with pytest.raises(DbtRuntimeError, match="nothing is left"):
        run_operation(adapter, "compact_shard", "s3://lake/orders", "default", {})


def test_a_reset_says_what_it_does_and_is_to_be_confirmed(
    adapter: Any, opened: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locations, "open_store", lambda *_: bucket_of(pytest.fail("S3 is asked")))
    for confirm in (False, None, "true", 1):
        with pytest.raises(DbtRuntimeError, match="takes away all times that can be read") as told:
            run_operation(adapter, "reset_shard", "s3://lake/orders", "default", confirm)
        command = "reset_shard --args '{location: s3://lake/orders, confirm: true}'"
        assert str(told.value.msg).endswith(command)
    problems = refused(adapter, "reset_shard", "orders", "lake", True)
    assert [problem.split()[0] for problem in problems] == ["aws_connection", "location"]
    assert opened == []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (0, []),
        (3, ["bytes by column: a 3 B"]),
        (1003, ["bytes by column of the newest 1000 files: a 1000 B"]),
    ],
)
def test_bytes_by_column_are_told_of_files_that_are_there_and_read(
    adapter: Any, monkeypatch: pytest.MonkeyPatch, files: int, expected: list[str]
) -> None:
    state = SimpleNamespace(batches=[SimpleNamespace(files=[None] * files)])
    store = SimpleNamespace(existing=lambda: SimpleNamespace(state=state), prefix=None)
    read = min(files, 1000)
    monkeypatch.setattr(locations, "StateStore", lambda *_: store)
    monkeypatch.setattr(locations, "description_lines", lambda *_: ["a shard"])
    monkeypatch.setattr(
        locations, "bytes_in_files", lambda *_: ColumnBytes(read, bytes={"a": read})
    )
    told: list[str] = []
    monkeypatch.setattr(locations.logger, "info", told.append)
    run_operation(adapter, "describe_shard", "s3://acme/shards/orders", "default")
    assert [line.strip() for line in told] == ["a shard", *expected]
