"""A store that does not heed the conditions of writes is found out, and nothing is left there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from support.export.committing import prepared
from support.s3.memory import MemoryS3, failure
from support.s3.opened import prefix_of

from dbt.adapters.mzs3.errors import LocationError, S3Error
from dbt.adapters.mzs3.export.options import OnExisting
from dbt.adapters.mzs3.store import conditions as objects_conditions
from dbt.adapters.mzs3.store.conditions import (
    Conditions,
    store_conditions,
    supports_atomic_conditional_delete,
    supports_conditional_delete,
)
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.prefix import Prefix


class Store(MemoryS3):
    """Heeds the conditions whose names are in `heeded`; the others are `ignored` or unknown."""

    def __init__(self, *heeded: str, ignored: bool = True) -> None:
        super().__init__()
        self.heeded = set(heeded)
        self.ignored = ignored
        self.asked: Counter[str] = Counter()
        self.loses: set[int] = set()
        self.tells_of_missing = False

    def put_object(self, *, Key: str, **given: Any) -> dict[str, str]:
        self.asked["PutObject"] += 1
        given = self._heeded("PUT", given)
        answer = super().put_object(Key=Key, **given)
        if self.asked["PutObject"] in self.loses:  # boto3 asks again, and gets that answer
            answer = super().put_object(Key=Key, **given)
        return answer

    def delete_object(self, *, Key: str, **given: Any) -> None:
        self.asked["DeleteObject"] += 1
        given = self._heeded("DELETE", given)
        if self.tells_of_missing and Key not in self.objects:
            raise failure("NoSuchKey")
        super().delete_object(Key=Key, **given)

    def _heeded(self, method: str, given: dict[str, Any]) -> dict[str, Any]:
        conditions = {"IfMatch", "IfNoneMatch"} & set(given)
        unknown = {name for name in conditions if f"{method} {name}" not in self.heeded}
        if unknown and not self.ignored:
            raise failure("NotImplemented")
        return {name: value for name, value in given.items() if name not in unknown}


EVERY = ("PUT IfNoneMatch", "PUT IfMatch", "DELETE IfMatch")


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(objects_conditions, "_known", {})
    return


def prefix(s3: MemoryS3, prefix: str = "x/") -> Prefix:
    client: Any = s3
    return prefix_of(client, S3Location("b", prefix))


@pytest.mark.parametrize("ignored", [True, False])
@pytest.mark.parametrize(
    ("heeded", "found"),
    [
        (EVERY, Conditions(creates=True, replaces=True)),
        (EVERY[:1], Conditions(creates=True, replaces=False)),
        ((), Conditions(creates=False, replaces=False)),
    ],
)
def test_what_a_store_heeds_is_seen(
    heeded: tuple[str, ...], found: Conditions, ignored: bool
) -> None:
    s3 = Store(*heeded, ignored=ignored)
    assert store_conditions(prefix(s3)) == found
    assert s3.objects == {}


def test_a_store_that_heeds_if_match_alone_does_not_create(s3: Store) -> None:
    s3.heeded.remove("PUT IfNoneMatch")
    assert not store_conditions(prefix(s3)).creates
    assert s3.objects == {}


@pytest.fixture
def s3() -> Store:
    return Store(*EVERY)


@pytest.mark.parametrize("lost", [1, 2, 3, 4])
def test_an_answer_that_is_lost_changes_nothing(s3: Store, lost: int) -> None:
    s3.loses = {lost}
    assert store_conditions(prefix(s3)) == Conditions(True, True)
    assert s3.objects == {}


@pytest.mark.parametrize("heeded", [EVERY, EVERY[:2]])
def test_whether_a_store_compares_before_it_deletes(heeded: tuple[str, ...]) -> None:
    assert supports_atomic_conditional_delete(prefix(Store(*heeded))) == (heeded == EVERY)


@pytest.mark.parametrize("tells_of_missing", [False, True])
@pytest.mark.parametrize("ignored", [True, False])
@pytest.mark.parametrize("heeded", [EVERY, EVERY[:2], ()])
def test_whether_a_store_deletes_what_does_not_match(
    heeded: tuple[str, ...], ignored: bool, tells_of_missing: bool
) -> None:
    s3 = Store(*heeded, ignored=ignored)
    s3.tells_of_missing = tells_of_missing
    for _ in range(2):
        assert supports_conditional_delete(prefix(s3)) == (heeded == EVERY)
    assert s3.objects == {}
    puts = 1 if ignored or "PUT IfNoneMatch" in heeded else 2  # again without the condition
    assert s3.asked["PutObject"] == (puts if heeded != EVERY or tells_of_missing else 0)


def test_an_object_that_is_written_twice_is_deleted_all_the_same() -> None:
    s3 = Store(*EVERY[:2])
    s3.loses = {1}
    assert not supports_conditional_delete(prefix(s3))
    assert s3.objects == {}


def test_a_bucket_that_is_missing_is_no_store_that_does_not_compare() -> None:
    s3 = Store(*EVERY[:2])

    def missing(action: str, _: str) -> None:
        raise failure("NoSuchBucket" if action == "PutObject" else "NoSuchKey")

    s3.before = missing
    s3.tells_of_missing = True
    with pytest.raises(S3Error, match="NoSuchBucket"):
        supports_conditional_delete(prefix(s3))


def test_a_store_that_compares_only_what_is_there_is_tried_with_an_object(s3: Store) -> None:
    written: list[str] = []

    class Lenient(Store):
        def delete_object(self, *, Key: str, **given: Any) -> None:
            if Key in self.objects:
                super().delete_object(Key=Key, **given)

    s3 = Lenient(*EVERY)
    s3.before = lambda action, key: written.append(key) if action == "PutObject" else None
    assert supports_conditional_delete(prefix(s3))
    assert s3.objects == {}
    (key,) = written
    # No source takes an object of this name, and an export passes over it.
    assert key.startswith("x/_mzs3_")
    assert key.endswith("/_committing.json")


@pytest.mark.parametrize("action", ["DeleteObject", "PutObject"])
def test_what_can_not_be_tried_names_the_object_and_the_permissions(action: str) -> None:
    s3 = Store("PUT IfNoneMatch")

    def before(asked: str, key: str) -> None:
        if asked == action:
            raise failure("AccessDenied")

    s3.before = before
    with pytest.raises(
        S3Error,
        match=r"^trying a conditional DELETE at s3://b/x/_mzs3_\w+/_committing\.json failed: "
        r"AccessDenied: No\. \(needs s3:PutObject and s3:DeleteObject\)$",
    ):
        supports_conditional_delete(prefix(s3))
    s3.before = lambda asked, key: None
    assert not supports_conditional_delete(prefix(s3))


@pytest.mark.parametrize(
    "host",
    [
        "s3.amazonaws.com",
        "s3.eu-central-1.amazonaws.com",
        "s3.us-gov-west-1.amazonaws.com",
        "s3.cn-north-1.amazonaws.com.cn",
        "s3.dualstack.us-east-1.amazonaws.com",
        "s3-fips.us-east-1.amazonaws.com",
        "bucket.vpce-1a2b-3c4d.s3.us-east-1.vpce.amazonaws.com",
    ],
)
def test_amazon_s3_is_not_asked(s3: Store, host: str) -> None:
    s3.meta.endpoint_url = f"https://{host}"
    assert supports_conditional_delete(prefix(s3))
    assert not s3.asked


@pytest.mark.parametrize(
    "host",
    [
        "s3.amazonaws.com.example.org",
        "s3-minio-1.elb.eu-central-1.amazonaws.com",
        "ec2-192-0-2-1.compute-1.amazonaws.com:9000",
        "x.s3-outposts.us-east-1.amazonaws.com",
    ],
)
def test_other_servers_with_a_name_at_amazon_are_asked(s3: Store, host: str) -> None:
    s3.meta.endpoint_url = f"https://{host}"
    assert supports_conditional_delete(prefix(s3))
    assert s3.asked


def test_a_bucket_is_tried_once(s3: Store) -> None:
    store_conditions(prefix(s3))
    asked = s3.asked.copy()
    store_conditions(prefix(s3, "y/"))
    assert s3.asked == asked


@pytest.mark.parametrize("heeded", [EVERY, ()])
def test_no_object_is_made_where_none_can_be_deleted(heeded: tuple[str, ...]) -> None:
    s3 = Store(*heeded)
    written: list[str] = []

    def before(action: str, key: str) -> None:
        if action == "DeleteObject":
            raise failure("AccessDenied")
        if action == "PutObject":
            written.append(key)

    s3.before = before
    found = store_conditions(prefix(s3))
    assert found == Conditions(creates=bool(heeded), replaces=bool(heeded))
    assert len(written) == 1
    assert not heeded or s3.objects == {}


def test_a_refusal_names_the_permissions(s3: Store) -> None:
    def before(action: str, key: str) -> None:
        if action == "PutObject":
            raise failure("AccessDenied")

    s3.before = before
    with pytest.raises(S3Error, match=r"conditional writes at s3://b/x/ .* s3:PutObject and s3:"):
        store_conditions(prefix(s3))


@pytest.mark.parametrize("mode", ["overwrite", "resume"])
@pytest.mark.parametrize("heeded", [(), ("PUT IfNoneMatch",), ("PUT IfMatch",)])
def test_no_run_replaces_or_resumes_on_a_store_that_lacks_a_condition(
    mode: OnExisting, heeded: tuple[str, ...]
) -> None:
    s3 = Store(*heeded)
    with pytest.raises(LocationError, match=f"on_existing: {mode} needs a store that does"):
        prepared(s3, mode)
    assert s3.objects == {}
    assert s3.uploads == {}


def test_a_first_export_needs_no_right_to_delete(s3: Store) -> None:
    prepared(s3, "fail")
    assert s3.asked == {"DeleteObject": 1}  # of nothing, to see what the store says
