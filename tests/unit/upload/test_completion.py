"""An upload is completed once, on the condition that nothing else has its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.export.committing import export, prefix, run
from support.s3.memory import MemoryS3, failure

from dbt.adapters.mzs3.errors import CopyError
from dbt.adapters.mzs3.export.commit.preflight import recover
from dbt.adapters.mzs3.store import prefix as objects_prefix
from dbt.adapters.mzs3.store.failures import StoreError, describe
from dbt.adapters.mzs3.store.store import ListedObject
from dbt.adapters.mzs3.upload import pending
from dbt.adapters.mzs3.upload.pending import (
    KnownEtags,
    PendingFile,
    TakenError,
    complete,
    is_file,
    multipart_etag,
)

KEY = "x/part-0000-0001.csv"


class Store(MemoryS3):
    """`answers` are those to the next completions, in order; None for what is done. `etag` is
    that of every object, if it is not None."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[str | None] = []
        self.etag: str | None = None
        self.conditions: list[dict[str, str]] = []
        self.md5_of_intent = False

    def complete_multipart_upload(self, **given: Any) -> dict[str, str]:
        self.conditions.append({n: given[n] for n in ("IfNoneMatch", "IfMatch") if n in given})
        if (code := self.answers.pop(0) if self.answers else None) is not None:
            raise failure(code, "CompleteMultipartUpload")
        return super().complete_multipart_upload(**given)

    def _etag(self, key: str) -> str:
        is_plain = self.md5_of_intent and key.endswith("_committing.json")
        return super()._etag(key) if self.etag is None or is_plain else self.etag


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(objects_prefix, "_PAUSE_S", 0.0)
    monkeypatch.setattr(pending, "_PAUSES_S", (0.0,) * 5)
    return Store()


@pytest.fixture
def completed(s3: Store) -> Callable[..., str | None]:
    def run(
        file: PendingFile, known: KnownEtags | None = None, replaced_etag: str | None = None
    ) -> str | None:
        return complete(prefix(s3), file, known or KnownEtags(replaced_etag, is_amazon_s3=False))

    return run


Completed = Callable[..., "str | None"]


def test_a_new_name_is_to_be_free_and_an_old_one_to_be_what_it_was(
    s3: Store, completed: Completed
) -> None:
    before = completed(s3.opened(KEY))
    assert before
    assert completed(s3.opened(KEY, 20), replaced_etag=before)
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
    assert completed(s3.opened(KEY), replaced_etag='"old"')
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


OTHER, NUMBERED, OPAQUE = f'"{"0" * 32}-1"', f'"{"0" * 32}-2"', '"opaque"'


def denied(action: str, _: str) -> None:
    if action == "ListParts":
        raise failure("AccessDenied", action)


@pytest.mark.parametrize("follow", [True, False])
@pytest.mark.parametrize(
    ("etag", "number_fits"), [(OTHER, True), (NUMBERED, False), (OPAQUE, False)]
)
def test_who_may_not_ask_for_parts_goes_by_the_etag(
    s3: Store, completed: Completed, etag: str, number_fits: bool, follow: bool
) -> None:
    file, known = s3.opened(KEY), KnownEtags(is_amazon_s3=True)
    known.are_md5s = follow
    s3.objects[KEY], s3.etag, s3.before = b"#" * 10, etag, denied
    if number_fits and not follow:  # as under KMS: nothing speaks against it
        assert completed(file, known=known) == ""
        return
    with pytest.raises(TakenError):
        completed(file, known=known)


FORMULA = multipart_etag(MemoryS3().opened(KEY).etags)


@pytest.mark.parametrize(
    ("etag", "knows", "is_it"),
    [
        (FORMULA, {}, True),
        (OTHER, {}, None),
        (OTHER, {"are_md5s": True}, None),  # another store's formula may be another one
        (OTHER, {"is_amazon_s3": True}, None),
        (OTHER, {"is_amazon_s3": True, "are_md5s": True}, False),
        (OTHER, {"by_key": {KEY: OTHER.strip('"')}, "are_md5s": True}, True),
        (NUMBERED, {}, None),
        (NUMBERED, {"numbered": True}, False),
        (OPAQUE, {"are_md5s": True}, None),
        (OPAQUE, {"numbered": True}, False),
    ],
)
def test_whose_an_object_is_follows_from_what_is_known_of_etags(
    s3: Store, etag: str, knows: dict[str, Any], is_it: bool | None
) -> None:
    file, known = s3.opened(KEY), KnownEtags(is_amazon_s3=False)
    for name, value in knows.items():
        setattr(known, name, value)
    assert is_file(ListedObject(KEY, etag, 10), file, known) is is_it
    assert is_file(ListedObject(KEY, etag, 11), file, known) is False
    assert is_file(None, file, known) is False


@pytest.mark.parametrize("answered", [FORMULA, OTHER.strip('"')])
def test_a_completion_that_is_answered_tells_how_the_store_makes_etags(
    s3: Store, answered: str
) -> None:
    known = KnownEtags(is_amazon_s3=True)
    known.are_md5s = answered != FORMULA
    known.note(s3.opened("x/another"), f'"{answered}"')
    assert known.numbered
    assert known.follow_formula == (answered == FORMULA)


def test_an_answer_without_an_etag_proves_nothing(
    s3: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the store has completed is not known: nobody may go on without asking."""
    commit, files = export(s3, "a")
    complete_upload = Store.complete_multipart_upload

    def answer(store: Store, **given: Any) -> dict[str, str]:
        found = complete_upload(store, **given)
        return {} if given["Key"] == files[0].key else found

    monkeypatch.setattr(Store, "complete_multipart_upload", answer)
    with commit:
        commit.claim()
        commit.complete()
        assert not commit._effects.has_completed_all
        assert {*commit._effects.known.by_key} == {file.key for file in files[1:]}
        commit.finish()


def test_an_answer_without_an_etag_to_what_was_not_done_is_a_failure(
    s3: Store, completed: Completed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store, "complete_multipart_upload", lambda *_, **__: {})
    with pytest.raises(StoreError, match="no ETag"):
        completed(s3.opened(KEY))
    assert KEY not in s3.objects


@pytest.mark.parametrize("times", [1, 2])
def test_a_name_that_is_said_to_be_taken_by_nothing_is_free(
    s3: Store, completed: Completed, times: int
) -> None:
    """It was removed meanwhile; or the store says so of what was deleted, and keeps versions."""
    s3.answers = ["PreconditionFailed"] * times
    assert completed(s3.opened(KEY))
    conditions: list[dict[str, str]] = [{"IfNoneMatch": "*"}, {"IfNoneMatch": "*"}, {}]
    assert s3.conditions == conditions[: times + 1]


def test_amazon_s3_is_never_asked_without_a_condition(s3: Store, completed: Completed) -> None:
    s3.answers = ["PreconditionFailed"] * 3
    with pytest.raises(StoreError, match="PreconditionFailed"):
        completed(s3.opened(KEY), known=KnownEtags(is_amazon_s3=True))
    assert s3.conditions == [{"IfNoneMatch": "*"}] * 2


def test_a_412_tells_nothing_of_how_a_store_makes_etags(s3: Store, completed: Completed) -> None:
    """StorageGRID's are said to have no number; the answer to the first completion was lost."""
    file, s3.etag = s3.opened(KEY), OPAQUE
    assert completed(file)
    s3.answers = ["PreconditionFailed"]
    assert completed(file) == ""


def test_an_old_file_that_is_gone_though_the_store_says_unmet_leaves_a_free_name(
    s3: Store, completed: Completed
) -> None:
    s3.answers = ["PreconditionFailed"]
    assert completed(s3.opened(KEY), replaced_etag='"old"')
    assert s3.conditions == [{"IfMatch": '"old"'}, {"IfNoneMatch": "*"}]


def test_a_store_that_does_not_know_the_condition_is_asked_without(
    s3: Store, completed: Completed
) -> None:
    s3.answers = ["NotImplemented"]
    assert completed(s3.opened(KEY))
    assert s3.conditions == [{"IfNoneMatch": "*"}, {}]


def test_a_conflict_is_tried_again(s3: Store, completed: Completed) -> None:
    s3.answers = ["ConditionalRequestConflict"] * 20  # all of four rounds
    assert completed(s3.opened(KEY))


def test_a_conflict_that_lasts_says_what_to_do(s3: Store, completed: Completed) -> None:
    s3.answers = ["ConditionalRequestConflict"] * 100
    with pytest.raises(StoreError) as raised:
        completed(s3.opened(KEY))
    said = describe(raised.value, "completing it")
    assert said.endswith("location of its own, and run again")
    assert "another request for the same name is under way" in said


def test_an_upload_that_a_conflict_has_removed_is_gone(s3: Store, completed: Completed) -> None:
    file = s3.opened(KEY)
    s3.answers = ["ConditionalRequestConflict"]
    s3.uploads.clear()
    assert completed(file) is None


def test_an_upload_that_is_gone_is_not_asked_for_again(s3: Store, completed: Completed) -> None:
    file = s3.opened(KEY)
    s3.uploads.clear()
    assert completed(file) is None
    assert s3.conditions == [{"IfNoneMatch": "*"}]


@pytest.mark.parametrize("size", [10, 11])
def test_an_export_tells_of_a_file_that_came_in_its_way_and_leaves_it(
    s3: Store, size: int
) -> None:
    commit, _ = export(s3, "a")

    def come(action: str, _: str) -> None:
        if action == "CompleteMultipartUpload":
            s3.objects.setdefault(KEY, b"#" * size)

    s3.before = come
    with pytest.raises(TakenError, match=f"s3://b/{KEY} is there, which this run was"):
        run(commit)  # and that is all that is said of it
    assert [key for key in s3.objects if key != "x/_committing.json"] == [KEY]
    assert not s3.uploads


class Killed(BaseException):
    """Stands for the death of the process."""


def killed_at(s3: Store, action: str, key: str = KEY) -> None:
    """A run that is killed at its first such request, and asks nothing more."""
    commit, _ = export(s3, "a")
    dead: list[str] = []

    def before(asked: str, of: str) -> None:
        if dead or (asked, of) == (action, key):
            dead.append(asked)
            raise Killed

    s3.before = before
    with pytest.raises(Killed):
        run(commit)
    s3.before = lambda *_: None


def test_an_intent_that_another_run_has_written_tells_nothing_of_the_files(s3: Store) -> None:
    """That run has another encryption: its intent has an MD5 as its ETag, the files have none."""
    s3.meta.endpoint_url = "https://s3.eu-central-1.amazonaws.com"
    s3.etag = OTHER  # of whatever is there, as under aws:kms
    killed_at(s3, "PutObject", "x/_manifest.json")
    dead: list[str] = []

    def before(asked: str, of: str) -> None:
        if dead or (asked, of) == ("PutObject", "x/_manifest.json"):
            dead.append(asked)
            raise Killed

    s3.before = before
    with pytest.raises(Killed):
        recover(prefix(s3), has_conditional_deletes=True)
    s3.before = lambda *_: None
    s3.md5_of_intent = True
    assert recover(prefix(s3), has_conditional_deletes=True).finished is not None


@pytest.mark.parametrize(
    ("action", "code"),
    [
        ("ListParts", "MethodNotAllowed"),
        ("ListObjectsV2", "MethodNotAllowed"),
        ("ListObjectsV2", "AccessDenied"),
    ],
)
def test_a_look_that_fails_is_no_refusal_of_the_completion(
    s3: Store, action: str, code: str
) -> None:
    killed_at(s3, "CompleteMultipartUpload")
    s3.objects[KEY] = b"#" * 10
    s3.etag = OTHER
    ids = set(s3.uploads)

    def before(asked: str, key: str) -> None:
        if asked == action and key == KEY:
            raise failure(code, asked)

    s3.before = before
    with pytest.raises(CopyError, match=code):
        recover(prefix(s3), has_conditional_deletes=True)
    assert set(s3.uploads) >= {one for one in ids if KEY in one}
    s3.before = lambda *_: None
    assert recover(prefix(s3), has_conditional_deletes=True).finished is None
    assert s3.objects[KEY] == b"#" * 10


@pytest.mark.parametrize("etag", [None, OTHER, OPAQUE])
def test_a_file_of_somebody_else_stays_where_a_run_died_before_it_had_cleaned_up(
    s3: Store, etag: str | None
) -> None:
    s3.etag = etag

    def come() -> None:
        s3.objects.setdefault(KEY, b"#" * 10)

    commit, _ = export(s3, "a")
    dead: list[str] = []

    def before(action: str, _: str) -> None:
        if action == "CompleteMultipartUpload":
            come()
        if dead or action == "AbortMultipartUpload":
            dead.append(action)
            raise Killed

    s3.before = before
    with pytest.raises(Killed):
        run(commit)
    s3.before = lambda *_: None
    assert recover(prefix(s3), has_conditional_deletes=True).finished is None
    assert s3.objects[KEY] == b"#" * 10
    assert not s3.uploads


def test_the_sha256_of_parts_is_no_part_of_their_etags() -> None:
    etags = MemoryS3().opened(KEY).etags
    assert multipart_etag([f"{etag} sha256=s=" for etag in etags]) == FORMULA is not None
