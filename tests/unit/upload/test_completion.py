"""An upload is completed once, on the condition that nothing else has its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.committing import export, prefix
from support.memory_s3 import MemoryS3, failure

from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.export.commit.intent import CommitError
from dbt.adapters.mzs3.objects import prefix as objects_prefix
from dbt.adapters.mzs3.upload.pending import PendingFile, TakenError, complete

KEY = "x/part-0000-0001.csv"


class Store(MemoryS3):
    """`answers` are those to the next completions, in order; None for what is done. `etag` is
    that of every object, if it is not None."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[str | None] = []
        self.etag: str | None = None
        self.conditions: list[dict[str, str]] = []

    def complete_multipart_upload(self, **given: Any) -> dict[str, str]:
        self.conditions.append({n: given[n] for n in ("IfNoneMatch", "IfMatch") if n in given})
        if (code := self.answers.pop(0) if self.answers else None) is not None:
            raise failure(code, "CompleteMultipartUpload")
        return super().complete_multipart_upload(**given)

    def _etag(self, key: str) -> str:
        return self.etag if self.etag is not None else super()._etag(key)


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(objects_prefix, "_PAUSE_S", 0.0)
    return Store()


@pytest.fixture
def completed(s3: Store) -> Callable[..., str | None]:
    def run(file: PendingFile, **how: Any) -> str | None:
        return complete(prefix(s3), file, **how)

    return run


Completed = Callable[..., "str | None"]


def test_a_new_name_is_to_be_free_and_an_old_one_to_be_what_it_was(
    s3: Store, completed: Completed
) -> None:
    before = completed(s3.opened(KEY))
    assert before
    assert completed(s3.opened(KEY, 20), instead_of=before)
    assert s3.conditions == [{"IfNoneMatch": "*"}, {"IfMatch": before}]


def test_what_was_completed_before_is_known_by_its_upload_that_is_gone(
    s3: Store, completed: Completed
) -> None:
    file = s3.opened(KEY)
    assert completed(file)
    assert completed(file) == ""


def test_what_was_to_be_replaced_and_is_gone_leaves_a_free_name(
    s3: Store, completed: Completed
) -> None:
    s3.answers = ["NoSuchKey"]
    assert completed(s3.opened(KEY), instead_of='"old"')
    assert s3.conditions == [{"IfMatch": '"old"'}, {"IfNoneMatch": "*"}]


@pytest.mark.parametrize("size", [10, 11])
def test_a_name_that_is_taken_is_an_error_and_nothing_is_replaced(
    s3: Store, completed: Completed, size: int
) -> None:
    file = s3.opened(KEY)
    s3.objects[KEY] = b"#" * size
    with pytest.raises(TakenError, match=f"s3://b/{KEY} is there, which this run was about"):
        completed(file)
    assert s3.objects[KEY] == b"#" * size
    assert s3.uploads


@pytest.mark.parametrize(("etag", "is_ours"), [('"a-1"', True), ('"a-2"', False), ('"a"', False)])
def test_who_may_not_ask_for_parts_goes_by_their_number(
    s3: Store, completed: Completed, etag: str, is_ours: bool
) -> None:
    file = s3.opened(KEY)
    s3.objects[KEY], s3.etag = b"#" * 10, etag

    def deny(action: str, _: str) -> None:
        if action == "ListParts":
            raise failure("AccessDenied", action)

    s3.before = deny
    if is_ours:
        assert completed(file) == ""
        return
    with pytest.raises(TakenError):
        completed(file)


def test_a_store_that_does_not_know_the_condition_is_asked_without(
    s3: Store, completed: Completed
) -> None:
    s3.answers = ["NotImplemented"]
    assert completed(s3.opened(KEY))
    assert s3.conditions == [{"IfNoneMatch": "*"}, {}]


def test_a_conflict_is_tried_again(s3: Store, completed: Completed) -> None:
    s3.answers = ["ConditionalRequestConflict"] * 2
    assert completed(s3.opened(KEY))


def test_an_upload_that_a_conflict_has_removed_is_gone(s3: Store, completed: Completed) -> None:
    file = s3.opened(KEY)
    s3.answers = ["ConditionalRequestConflict"]
    s3.uploads.clear()
    assert completed(file) is None


@pytest.mark.parametrize("size", [10, 11])
def test_an_export_tells_of_a_file_that_came_in_its_way_and_leaves_it(
    s3: Store, size: int
) -> None:
    commit, _ = export(s3, "a")

    def come(action: str, _: str) -> None:
        if action == "CompleteMultipartUpload":
            s3.objects.setdefault(KEY, b"#" * size)

    s3.before = come
    with pytest.raises(Mzs3Error, match=f"s3://b/{KEY} is there, which this run was") as raised:
        commit.run()
    if size == 10:  # as large as the file would be
        assert isinstance(raised.value, CommitError)
        assert raised.value.spared == (f"s3://b/{KEY}",)
    assert [key for key in s3.objects if key != "x/_committing.json"] == [KEY]
    assert not s3.uploads
