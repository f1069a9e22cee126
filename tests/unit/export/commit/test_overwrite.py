"""Overwrites that are refused or die at any request: readers of the manifest see one export."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from typing import Any

import pytest
from memory_s3 import MemoryS3, failure

from dbt.adapters.mzs3.aws.location import S3Location
from dbt.adapters.mzs3.errors import CopyError, LocationError
from dbt.adapters.mzs3.export.commit.existing import (
    Existing,
    plan_replacement,
    read_existing,
    require_ours,
    require_same_reading,
)
from dbt.adapters.mzs3.export.commit.intent import (
    CommitError,
    CommitIntent,
    PendingExport,
    StaleFilesError,
)
from dbt.adapters.mzs3.export.commit.manifest import to_json
from dbt.adapters.mzs3.export.commit.preflight import prepare, recover
from dbt.adapters.mzs3.export.commit.protocol import Commit
from dbt.adapters.mzs3.objects.prefix import Prefix
from dbt.adapters.mzs3.upload.names import UsedNames
from dbt.adapters.mzs3.upload.pending import PendingFile

LOCATION = S3Location("b", "x/")
OLD = {"part-0000-0001.csv": 10, "part-0001-0001.csv": 11, "part-0002-0001.csv": 12}
NEW = {"part-0000-0002.csv": 20, "part-0001-0002.csv": 21}
SINGLE_OLD = {"all.csv": 10}
SINGLE_NEW = {"all.csv": 20}


class DeathError(BaseException):
    """The process ends here."""


def manifest_of(sizes: dict[str, int]) -> dict[str, Any]:
    entries = [
        {
            "url": f"s3://b/x/{name}",
            "meta": {"content_length": size, "record_count": 1, "run_id": str(sizes)},
        }
        for name, size in sizes.items()
    ]
    return {
        "entries": entries,
        "author": {"name": "dbt-mzs3"},
        "run_id": str(sizes),
        "meta": {"record_count": len(sizes)},
    }


def prefix(s3: MemoryS3) -> Prefix:
    client: Any = s3
    return Prefix(client, LOCATION)


def holding(s3: MemoryS3, sizes: dict[str, int]) -> Existing:
    """A location with an export."""
    for name, size in sizes.items():
        s3.objects[f"x/{name}"] = b"x" * size
    s3.objects["x/_manifest.json"] = to_json(manifest_of(sizes))
    existing = read_existing(prefix(s3))
    assert existing is not None
    return existing


def overwrite(s3: MemoryS3, existing: Existing, sizes: dict[str, int]) -> Commit:
    """A run that has uploaded its files and goes on to commit them."""
    files = [s3.opened(f"x/{name}", size) for name, size in sizes.items()]
    replaced = plan_replacement(existing, files, partitioned=False, everything=False)
    pending = PendingExport(
        tuple(files),
        manifest_of(sizes),
        replaces=existing.etag,
        stale=tuple(f"x/{name}" for name in replaced.stale),
        in_place=prefix(s3).find(files[0].key).etag if replaced.in_place else None,  # type: ignore[union-attr]
    )
    return Commit(prefix(s3), pending, deletes=True)


def seen(s3: MemoryS3) -> list[str]:
    """What a reader that follows the manifest finds; every file must be there, and be it."""
    entries = json.loads(s3.objects["x/_manifest.json"])["entries"]
    for entry in entries:
        key = entry["url"].removeprefix("s3://b/")
        assert len(s3.objects[key]) == entry["meta"]["content_length"]
    return [entry["url"].rsplit("/")[-1] for entry in entries]


def test_the_old_export_gives_way_to_the_new_one_at_once(s3: MemoryS3) -> None:
    commit = overwrite(s3, holding(s3, OLD), NEW)
    views: list[list[str]] = []
    s3.before = lambda action, key: views.append(seen(s3))
    commit.run()
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
        commit.run()
    except DeathError:
        died = True
    assert died == (dies_at < 12)  # of twelve requests
    s3.before = lambda action, key: None
    recover(prefix(s3), deletes=True)
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
        commit.run()
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
    commit.run()
    assert seen(s3) == list(NEW)
    assert sorted(s3.objects) == ["x/_manifest.json", *(f"x/{name}" for name in NEW)]


def test_old_files_that_can_not_be_removed_are_removed_by_the_next_run(s3: MemoryS3) -> None:
    commit = overwrite(s3, holding(s3, OLD), NEW)

    def refuse(action: str, key: str) -> None:
        if action == "DeleteObject":
            raise failure("AccessDenied")

    s3.before = refuse
    with pytest.raises(StaleFilesError, match="names the new export, whole; but files of the one"):
        commit.run()
    assert seen(s3) == list(NEW)
    s3.before = lambda action, key: None
    assert recover(prefix(s3), deletes=True).finished is not None
    assert sorted(s3.objects) == ["x/_manifest.json", *(f"x/{name}" for name in NEW)]


def test_a_run_that_was_taken_for_dead_deletes_no_new_file(s3: MemoryS3) -> None:
    slow = overwrite(s3, holding(s3, OLD), NEW)

    def next_run(action: str, key: str) -> None:
        if (action, key) == ("DeleteObject", "x/part-0000-0001.csv"):
            s3.before = lambda action, key: None
            preflight = prepare(prefix(s3), "overwrite")
            assert preflight.existing is not None
            assert "is complete now: 2 rows" in str(preflight.finished)
            name = f"part-0000-{preflight.first_number:04d}.csv"
            overwrite(s3, preflight.existing, {name: 30}).run()

    s3.before = next_run
    slow.run()
    assert seen(s3) == ["part-0000-0003.csv"]
    assert sorted(s3.objects) == ["x/_manifest.json", "x/part-0000-0003.csv"]


def test_a_slow_run_leaves_the_claim_of_the_next_one(s3: MemoryS3) -> None:
    slow = overwrite(s3, holding(s3, OLD), NEW)

    def claim_of_the_next(action: str, key: str) -> None:
        if action == "DeleteObject":
            s3.objects["x/_committing.json"] = b"of another run"

    s3.before = claim_of_the_next
    slow.run()
    assert s3.objects["x/_committing.json"] == b"of another run"


def test_a_run_that_another_overtook_leaves_that_one_alone(s3: MemoryS3) -> None:
    existing = holding(s3, OLD)
    late = overwrite(s3, existing, NEW)
    overwrite(s3, existing, {"part-0000-0002.csv": 30}).run()
    there = dict(s3.objects)
    with pytest.raises(LocationError, match="another run has committed an export to s3://b/x/"):
        late.run()
    assert s3.objects == there


@pytest.mark.parametrize("dies_at", range(8))
def test_a_single_file_is_replaced_whole(s3: MemoryS3, dies_at: int) -> None:
    commit = overwrite(s3, holding(s3, SINGLE_OLD), SINGLE_NEW)
    requests = 0

    def before(action: str, key: str) -> None:
        nonlocal requests
        requests += 1
        if requests > dies_at:
            raise DeathError

    s3.before = before
    with contextlib.suppress(DeathError):
        commit.run()
    s3.before = lambda action, key: None
    recover(prefix(s3), deletes=True)
    assert seen(s3) == ["all.csv"]
    assert "x/_committing.json" not in s3.objects


def test_a_single_file_that_can_not_get_its_manifest_waits_for_the_next_run(s3: MemoryS3) -> None:
    commit = overwrite(s3, holding(s3, SINGLE_OLD), SINGLE_NEW)

    def refuse(action: str, key: str) -> None:
        if (action, key) == ("PutObject", "x/_manifest.json"):
            raise failure("AccessDenied")

    s3.before = refuse
    with pytest.raises(CommitError) as raised:
        commit.run()
    [left] = raised.value.remains
    assert "may not name the new files yet: the next run to this location" in left
    s3.before = lambda action, key: None
    recover(prefix(s3), deletes=True)
    assert seen(s3) == ["all.csv"]
    assert len(s3.objects["x/all.csv"]) == 20


def test_a_single_file_whose_upload_is_gone_is_taken_back(s3: MemoryS3) -> None:
    commit = overwrite(s3, holding(s3, SINGLE_OLD), SINGLE_NEW)
    commit._claim()
    s3.uploads.clear()  # by a lifecycle rule, or another run
    assert recover(prefix(s3), deletes=True).finished is None
    assert sorted(s3.objects) == ["x/_manifest.json", "x/all.csv"]
    assert len(s3.objects["x/all.csv"]) == 10


def test_a_single_file_whose_completion_is_refused_is_taken_back(s3: MemoryS3) -> None:
    commit = overwrite(s3, holding(s3, SINGLE_OLD), SINGLE_NEW)

    def refuse(action: str, key: str) -> None:
        if action == "CompleteMultipartUpload":
            raise failure("AccessDenied", action)

    s3.before = refuse
    with pytest.raises(CommitError) as raised:
        commit.run()
    assert str(raised.value) == (
        "committing s3://b/x/ failed: completing the upload of s3://b/x/all.csv failed: "
        "AccessDenied: No. (needs s3:PutObject)"
    )
    assert raised.value.remains == ()
    assert sorted(s3.objects) == ["x/_manifest.json", "x/all.csv"]
    assert len(s3.objects["x/all.csv"]) == 10


def test_a_single_file_that_became_another_runs_gets_no_manifest(s3: MemoryS3) -> None:
    """The upload is gone, and another run has a file of that size there, but no manifest yet."""
    existing = holding(s3, SINGLE_OLD)
    late, other = overwrite(s3, existing, SINGLE_NEW), overwrite(s3, existing, SINGLE_NEW)
    manifest = {**other.pending.manifest, "run_id": "other"}
    other = Commit(prefix(s3), replace(other.pending, manifest=manifest), deletes=True)

    def before(action: str, key: str) -> None:
        if action == "CompleteMultipartUpload":
            s3.before = lambda action, key: None
            [file] = late.pending.files
            s3.abort_multipart_upload(Key=file.key, UploadId=file.upload_id)
            assert recover(prefix(s3), deletes=True).finished is None
            other._claim()
            other._complete_and_decide()

    s3.before = before
    with pytest.raises(CommitError, match="another run has committed an export"):
        late.run()
    other._make_visible()
    assert json.loads(s3.objects["x/_manifest.json"]) == other.pending.manifest


def test_numbers_of_a_commit_that_went_back_outlive_an_export_without_files(s3: MemoryS3) -> None:
    existing = holding(s3, OLD)
    closed = CommitIntent("b", "closed", None, "b", used=UsedNames(next_number=3))
    s3.objects["x/_committing.json"] = closed.to_json()
    manifest = {**manifest_of({}), "next_number": 2}
    pending = PendingExport((), manifest, replaces=existing.etag)
    Commit(prefix(s3), pending, deletes=True).run()
    assert recover(prefix(s3), deletes=True).used == UsedNames(next_number=3)


def test_a_run_that_comes_back_late_changes_nothing(s3: MemoryS3) -> None:
    """It was taken for dead before its manifest; another run finished it, and wrote its own."""
    slow = overwrite(s3, holding(s3, OLD), NEW)
    third = {"part-0000-0001.csv": 30}

    def another_run(action: str, key: str) -> None:
        if (action, key) == ("PutObject", "x/_manifest.json"):
            s3.before = lambda action, key: None
            recover(prefix(s3), deletes=True)
            existing = read_existing(prefix(s3))
            assert existing is not None
            overwrite(s3, existing, third).run()

    s3.before = another_run
    with pytest.raises(CommitError, match="another run has committed an export") as raised:
        slow.run()
    assert raised.value.remains == ()
    assert seen(s3) == list(third)
    assert sorted(s3.objects) == ["x/_manifest.json", "x/part-0000-0001.csv"]


def test_a_failed_run_leaves_the_one_that_finished_it_alone(s3: MemoryS3) -> None:
    files = [s3.opened(f"x/{name}", size) for name, size in OLD.items()]
    first = Commit(prefix(s3), PendingExport(tuple(files), manifest_of(OLD)), deletes=True)

    def another_run(action: str, key: str) -> None:
        if (action, key) == ("PutObject", "x/_manifest.json"):
            s3.before = lambda action, key: None
            recover(prefix(s3), deletes=True)
            existing = read_existing(prefix(s3))
            assert existing is not None
            overwrite(s3, existing, NEW).run()
            raise failure("InternalError")

    s3.before = another_run
    with pytest.raises(CommitError, match="InternalError"):
        first.run()
    assert seen(s3) == list(NEW)


def test_a_claim_that_was_copied_from_elsewhere_is_refused(s3: MemoryS3) -> None:
    commit = overwrite(s3, holding(s3, OLD), NEW)
    commit._claim()
    s3.objects["y/_committing.json"] = s3.objects["x/_committing.json"]
    client: Any = s3
    with pytest.raises(CopyError, match="it names files elsewhere"):
        recover(Prefix(client, S3Location("b", "y/")), deletes=True)
    assert seen(s3) == list(OLD)


def partitioned(name: str, folder: str) -> PendingFile:
    return PendingFile(0, 1, f"x/{folder}{name}", "id", ("etag",), 1, 1, "sum", folder)


def test_partitions_are_replaced_one_by_one(s3: MemoryS3) -> None:
    existing = holding(
        s3, {"d=1/part-0000-0001.csv": 1, "d=2/part-0000-0001.csv": 2, "d=2/part-0001-0001.csv": 3}
    )
    files = [partitioned("part-0000-0002.csv", "d=2/"), partitioned("part-0000-0002.csv", "d=3/")]
    some = plan_replacement(existing, files, partitioned=True, everything=False)
    assert [entry["url"] for entry in some.kept] == ["s3://b/x/d=1/part-0000-0001.csv"]
    assert some.stale == ("d=2/part-0000-0001.csv", "d=2/part-0001-0001.csv")
    every = plan_replacement(existing, files, partitioned=True, everything=True)
    assert every.kept == ()
    assert len(every.stale) == 3


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
        plan_replacement(existing, files, partitioned=False, everything=False)


def test_objects_that_no_manifest_names_are_not_touched(s3: MemoryS3) -> None:
    existing = holding(s3, OLD)
    s3.objects["x/_SUCCESS"] = s3.objects["x/d=1/.hidden"] = b""
    require_ours(prefix(s3), existing)
    s3.objects["x/mine.csv"] = b""
    with pytest.raises(LocationError, match=r"s3://b/x/mine.csv\. An overwrite replaces only"):
        require_ours(prefix(s3), existing)


@pytest.mark.parametrize(
    "content",
    [
        b"not json",
        b"{}",
        b'{"entries": [], "author": {"name": "other"}}',
        b'{"entries": [{"url": "s3://b/y/a.csv"}], "author": {"name": "dbt-mzs3"}}',
    ],
)
def test_a_manifest_of_others_is_refused(s3: MemoryS3, content: bytes) -> None:
    s3.objects["x/_manifest.json"] = content
    with pytest.raises(LocationError, match="is not a manifest that dbt-mzs3 writes"):
        read_existing(prefix(s3))


def test_a_single_file_that_another_run_has_given_up_is_told_of_as_that(s3: MemoryS3) -> None:
    commit = overwrite(s3, holding(s3, SINGLE_OLD), SINGLE_NEW)

    def give_up(action: str, key: str) -> None:
        if action == "CompleteMultipartUpload":
            s3.before = lambda *_: None
            s3.uploads.clear()
            assert recover(prefix(s3), deletes=True).finished is None

    s3.before = give_up
    with pytest.raises(CommitError, match="uploads of this run are gone"):
        commit.run()
    assert seen(s3) == list(SINGLE_OLD)
