"""Overwrites that are refused or die at any request: readers of the manifest see one export."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.export.committing import prefix, prepared, run
from support.export.overwriting import DeathError, holding, manifest_of, overwrite, seen
from support.s3.memory import MemoryS3, failure
from support.s3.opened import prefix_of

from dbt.adapters.mzs3.errors import CopyError, LocationError
from dbt.adapters.mzs3.export.commit.existing import (
    plan_replacement,
    read_existing,
    require_ours,
    require_same_reading,
)
from dbt.adapters.mzs3.export.commit.failures import CommitError, StaleFilesError
from dbt.adapters.mzs3.export.commit.intent import CommitIntent, PendingExport
from dbt.adapters.mzs3.export.commit.preflight import recover
from dbt.adapters.mzs3.export.commit.protocol import Commit
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.upload.names import UsedNames
from dbt.adapters.mzs3.upload.pending import PendingFile

OLD = {"part-0000-0001.csv": 10, "part-0001-0001.csv": 11, "part-0002-0001.csv": 12}
NEW = {"part-0000-0002.csv": 20, "part-0001-0002.csv": 21}


def test_the_old_export_gives_way_to_the_new_one_at_once(s3: MemoryS3) -> None:
    commit = overwrite(s3, holding(s3, OLD), NEW)
    views: list[list[str]] = []
    s3.before = lambda action, key: views.append(seen(s3))
    run(commit)
    s3.before = lambda action, key: None
    assert views[0] == list(OLD)
    assert views[-1] == list(NEW)
    assert sorted(s3.objects) == ["x/_manifest.json", *(f"x/{name}" for name in NEW)]
    assert not s3.uploads


@pytest.mark.parametrize("dies_at", range(14))
def test_a_death_at_any_request_is_made_good_by_the_next_run(s3: MemoryS3, dies_at: int) -> None:
    commit = overwrite(s3, holding(s3, OLD), NEW)
    requests = 0

    def before(action: str, key: str) -> None:
        nonlocal requests
        assert seen(s3) in (list(OLD), list(NEW))
        requests += 1
        if requests > dies_at:
            raise DeathError

    s3.before = before
    died = False
    try:
        run(commit)
    except DeathError:
        died = True
    assert died == (dies_at < 12)  # of twelve requests
    s3.before = lambda action, key: None
    recover(prefix(s3), has_conditional_deletes=True)
    names = seen(s3)
    assert names == (list(NEW) if dies_at > 1 else list(OLD))  # the claim is the second
    s3.uploads.clear()  # swept by the run
    assert sorted(s3.objects) == ["x/_manifest.json", *(f"x/{name}" for name in names)]


@pytest.mark.parametrize(
    ("action", "key"),
    [
        ("PutObject", "x/_committing.json"),
        ("CompleteMultipartUpload", "x/part-0001-0002.csv"),
        ("PutObject", "x/_manifest.json"),
    ],
)
def test_a_refusal_leaves_the_old_export(s3: MemoryS3, action: str, key: str) -> None:
    commit = overwrite(s3, holding(s3, OLD), NEW)
    before = dict(s3.objects)

    def refuse(found: str, at: str) -> None:
        if (found, at) == (action, key):
            raise failure("AccessDenied")

    s3.before = refuse
    with pytest.raises(CommitError, match="AccessDenied"):
        run(commit)
    assert s3.objects == before


def test_a_lost_answer_to_the_manifest_is_understood(s3: MemoryS3) -> None:
    commit = overwrite(s3, holding(s3, OLD), NEW)
    put = s3.put_object

    def lost(**arguments: Any) -> Any:
        answer = put(**arguments)
        if arguments["Key"].endswith("_manifest.json"):
            raise failure("InternalError")
        return answer

    s3.put_object = lost  # type: ignore[method-assign]
    run(commit)
    assert seen(s3) == list(NEW)
    assert sorted(s3.objects) == ["x/_manifest.json", *(f"x/{name}" for name in NEW)]


def test_old_files_that_can_not_be_removed_are_removed_by_the_next_run(s3: MemoryS3) -> None:
    commit = overwrite(s3, holding(s3, OLD), NEW)

    def refuse(action: str, key: str) -> None:
        if action == "DeleteObject":
            raise failure("AccessDenied")

    s3.before = refuse
    with pytest.raises(StaleFilesError, match="names the new export, whole; but files of the one"):
        run(commit)
    assert seen(s3) == list(NEW)
    s3.before = lambda action, key: None
    assert recover(prefix(s3), has_conditional_deletes=True).finished is not None
    assert sorted(s3.objects) == ["x/_manifest.json", *(f"x/{name}" for name in NEW)]


def test_a_run_that_was_taken_for_dead_deletes_no_new_file(s3: MemoryS3) -> None:
    slow = overwrite(s3, holding(s3, OLD), NEW)

    def next_run(action: str, key: str) -> None:
        if (action, key) == ("DeleteObject", "x/part-0000-0001.csv"):
            s3.before = lambda action, key: None
            preflight = prepared(s3, "overwrite")
            assert preflight.existing is not None
            assert "is complete now: 2 rows" in str(preflight.finished)
            name = f"part-0000-{preflight.first_number:04d}.csv"
            run(overwrite(s3, preflight.existing, {name: 30}))

    s3.before = next_run
    run(slow)
    assert seen(s3) == ["part-0000-0003.csv"]
    assert sorted(s3.objects) == ["x/_manifest.json", "x/part-0000-0003.csv"]


def test_a_slow_run_leaves_the_claim_of_the_next_one(s3: MemoryS3) -> None:
    slow = overwrite(s3, holding(s3, OLD), NEW)

    def claim_of_the_next(action: str, key: str) -> None:
        if action == "DeleteObject":
            s3.objects["x/_committing.json"] = b"of another run"

    s3.before = claim_of_the_next
    run(slow)
    assert s3.objects["x/_committing.json"] == b"of another run"


def test_a_run_that_another_overtook_leaves_that_one_alone(s3: MemoryS3) -> None:
    existing = holding(s3, OLD)
    late = overwrite(s3, existing, NEW)
    run(overwrite(s3, existing, {"part-0000-0002.csv": 30}))
    there = dict(s3.objects)
    with pytest.raises(LocationError, match="another run has committed an export to s3://b/x/"):
        run(late)
    assert s3.objects == there


def test_numbers_of_a_commit_that_went_back_outlive_an_export_without_files(s3: MemoryS3) -> None:
    existing = holding(s3, OLD)
    closed = CommitIntent("closed", "b", "b", used=UsedNames(next_number=3))
    s3.objects["x/_committing.json"] = closed.to_json()
    manifest = {**manifest_of({}), "next_number": 2}
    pending = PendingExport((), manifest, replaces=existing.etag)
    run(Commit(prefix(s3), pending, has_conditional_deletes=True))
    assert recover(prefix(s3), has_conditional_deletes=True).used == UsedNames(next_number=3)


def test_numbers_of_a_commit_that_went_back_are_not_used_again(s3: MemoryS3) -> None:
    holding(s3, OLD)
    closed = CommitIntent("closed", "b", "b", used=UsedNames(next_number=7))
    s3.objects["x/_committing.json"] = closed.to_json()
    assert prepared(s3, "overwrite").first_number == 7


def test_a_recovery_that_another_run_overtakes_goes_by_what_that_one_has_left(
    s3: MemoryS3,
) -> None:
    overwrite(s3, holding(s3, OLD), NEW).claim()
    closed = CommitIntent("closed", "b", "b", used=UsedNames(next_number=7))

    def another_run(action: str, key: str) -> None:
        if (action, key) == ("PutObject", "x/_committing.json"):
            s3.before = lambda action, key: None
            s3.objects["x/_committing.json"] = closed.to_json()

    s3.before = another_run
    assert recover(prefix(s3), has_conditional_deletes=True).used == closed.used


def test_a_run_that_comes_back_late_changes_nothing(s3: MemoryS3) -> None:
    """It was taken for dead before its manifest; another run finished it, and wrote its own."""
    slow = overwrite(s3, holding(s3, OLD), NEW)
    third = {"part-0000-0001.csv": 30}

    def another_run(action: str, key: str) -> None:
        if (action, key) == ("PutObject", "x/_manifest.json"):
            s3.before = lambda action, key: None
            recover(prefix(s3), has_conditional_deletes=True)
            existing = read_existing(prefix(s3))
            assert existing is not None
            run(overwrite(s3, existing, third))

    s3.before = another_run
    with pytest.raises(CommitError, match="another run has committed an export") as raised:
        run(slow)
    assert raised.value.leftovers == ()
    assert seen(s3) == list(third)
    assert sorted(s3.objects) == ["x/_manifest.json", "x/part-0000-0001.csv"]


def test_a_failed_run_leaves_the_one_that_finished_it_alone(s3: MemoryS3) -> None:
    files = [s3.opened(f"x/{name}", size) for name, size in OLD.items()]
    first = Commit(
        prefix(s3), PendingExport(tuple(files), manifest_of(OLD)), has_conditional_deletes=True
    )

    def another_run(action: str, key: str) -> None:
        if (action, key) == ("PutObject", "x/_manifest.json"):
            s3.before = lambda action, key: None
            recover(prefix(s3), has_conditional_deletes=True)
            existing = read_existing(prefix(s3))
            assert existing is not None
            run(overwrite(s3, existing, NEW))
            raise failure("InternalError")

    s3.before = another_run
    with pytest.raises(CommitError, match="InternalError"):
        run(first)
    assert seen(s3) == list(NEW)


def test_a_claim_that_was_copied_from_elsewhere_is_refused(s3: MemoryS3) -> None:
    commit = overwrite(s3, holding(s3, OLD), NEW)
    commit.claim()
    s3.objects["y/_committing.json"] = s3.objects["x/_committing.json"]
    client: Any = s3
    with pytest.raises(CopyError, match="it names files elsewhere"):
        recover(prefix_of(client, S3Location("b", "y/")), has_conditional_deletes=True)
    assert seen(s3) == list(OLD)


@pytest.mark.parametrize(
    "misplace",
    [
        lambda claim: claim["files"][1].update(key="y/part-0001-0002.csv"),
        lambda claim: claim["stale"].append("xy/part-0000-0001.csv"),
        lambda claim: claim["manifest"]["entries"][1].update(url="s3://b/y/part-0001-0002.csv"),
    ],
    ids=["a file", "a file to be removed", "a file of the manifest"],
)
def test_a_claim_that_names_one_file_elsewhere_is_refused(
    s3: MemoryS3, misplace: Callable[[Any], object]
) -> None:
    overwrite(s3, holding(s3, OLD), NEW).claim()
    s3.objects["y/part-0001-0002.csv"] = s3.objects["xy/part-0000-0001.csv"] = b"of others"
    claim = json.loads(s3.objects["x/_committing.json"])
    misplace(claim)
    s3.objects["x/_committing.json"] = json.dumps(claim).encode()
    before = dict(s3.objects)
    with pytest.raises(CopyError, match="it names files elsewhere"):
        recover(prefix(s3), has_conditional_deletes=True)
    assert s3.objects == before


def partitioned(name: str, folder: str) -> PendingFile:
    return PendingFile(0, 1, f"x/{folder}{name}", "id", ("etag",), 1, 1, "sum", folder)


def test_partitions_are_replaced_one_by_one(s3: MemoryS3) -> None:
    existing = holding(
        s3, {"d=1/part-0000-0001.csv": 1, "d=2/part-0000-0001.csv": 2, "d=2/part-0001-0001.csv": 3}
    )
    files = [partitioned("part-0000-0002.csv", "d=2/"), partitioned("part-0000-0002.csv", "d=3/")]
    kept, stale, _ = plan_replacement(existing, files, keeps_partitions=True)
    assert [entry["url"] for entry in kept] == ["s3://b/x/d=1/part-0000-0001.csv"]
    assert stale == ["d=2/part-0000-0001.csv", "d=2/part-0001-0001.csv"]
    kept, stale, _ = plan_replacement(existing, files, keeps_partitions=False)
    assert kept == []
    assert len(stale) == 3


def test_partitions_that_stay_are_read_as_the_new_ones_are(s3: MemoryS3) -> None:
    existing = holding(s3, {"d=1/part-0000-0001.csv": 1})
    options = {"format": "csv", "header": True, "on_existing": "overwrite"}
    columns = {"elements": [{"name": "a"}]}
    old = replace(existing, manifest={**existing.manifest, "options": options, "schema": columns})
    require_same_reading(old, {**options, "on_existing": "fail"}, columns)
    with pytest.raises(LocationError, match="other header, columns, and partitions without new"):
        require_same_reading(old, {**options, "header": False}, {"elements": []})


def test_new_files_never_have_the_names_of_old_ones(s3: MemoryS3) -> None:
    existing = holding(s3, OLD)
    files = [s3.opened("x/part-0000-0001.csv"), s3.opened("x/part-0003-0001.csv")]
    with pytest.raises(CopyError, match="choose another single_file"):
        plan_replacement(existing, files, keeps_partitions=False)


@pytest.mark.parametrize("name", ["mine.csv", "_old/mine.csv", "d=1/.x/mine.csv"])
def test_objects_that_no_manifest_names_are_not_touched(s3: MemoryS3, name: str) -> None:
    existing = holding(s3, OLD)
    s3.objects["x/_SUCCESS"] = s3.objects["x/d=1/.hidden"] = b""
    require_ours(prefix(s3), existing)
    s3.objects[f"x/{name}"] = b""
    with pytest.raises(LocationError, match=rf"s3://b/x/{name}\. An overwrite replaces only"):
        require_ours(prefix(s3), existing)


@pytest.mark.parametrize(
    "content",
    [
        b"not json",
        b"{}",
        b'{"entries": [], "author": {"name": "other"}}',
        b'{"entries": [{"url": "s3://b/y/a.csv"}], "author": {"name": "dbt-mzs3"}}',
        b'{"entries": [{"url": "s3://b/xy/a.csv"}], "author": {"name": "dbt-mzs3"}}',
        b'{"entries": [{"url": "s3://b/x/a.csv"}, {"url": "s3://b/y/a.csv"}], "author": '
        b'{"name": "dbt-mzs3"}}',
    ],
)
def test_a_manifest_of_others_is_refused(s3: MemoryS3, content: bytes) -> None:
    s3.objects["x/_manifest.json"] = content
    with pytest.raises(LocationError, match="is not a manifest that dbt-mzs3 writes"):
        read_existing(prefix(s3))
