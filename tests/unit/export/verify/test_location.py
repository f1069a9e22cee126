"""A location against its manifest: every problem, each with its object."""

import gzip
import hashlib
import re
import threading

import pytest
from support.s3.memory import failure
from support.s3.opened import bucket_of
from support.s3.readable import PREFIX, ReadableS3

from dbt.adapters.mzs3.errors import ConfigError, LocationError, S3Error
from dbt.adapters.mzs3.export import verify_copy as export_verify_copy
from dbt.adapters.mzs3.export.verify_copy import verify, verify_copy
from dbt.adapters.mzs3.store.connection import AwsConnection

FILES = {f"part-000{part}-0001.csv": (b"%d,x\n" % part * 3, 3) for part in range(4)}
FIRST, SECOND, THIRD, FOURTH = (f"s3://b/{PREFIX}{name}" for name in FILES)


@pytest.fixture
def s3():
    memory = ReadableS3()
    memory.export(FILES)
    return memory


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def test_an_export_that_is_as_its_manifest_says(s3):
    found = verify(s3.prefix)
    assert found.summary == (
        "s3://b/exports/orders/: 4 files, 12 rows, 48 B: all as the manifest says"
    )
    assert (found.problems, found.unlisted) == ((), ())


def test_sizes_are_readable():
    s3 = ReadableS3()
    s3.export({"part-0000-0001.csv": (b"x\n" * 750_000, 750_000)})
    assert "1 file, 750000 rows, 1.4 MB: all" in verify(s3.prefix).summary


def test_a_single_file_has_the_compression_of_the_options():
    s3 = ReadableS3()
    content = gzip.compress(b"1,x\n2,y\n")
    s3.export({"orders.csv": (content, 2)}, single_file="orders.csv", compression="gzip")
    assert verify(s3.prefix).problems == ()


def test_partitions_that_were_kept_have_the_compression_that_their_names_tell():
    s3 = ReadableS3()
    text = b"1,x\n2,y\n"
    kept = {"c=a/part-0000-0001.csv": (text, 2), "c=b/part-0000-0001.csv.zst": (b"?", 0)}
    new = {"c=c/part-0000-0002.csv.gz": (gzip.compress(text), 2)}
    s3.export({**kept, **new}, partition_by=["c"], compression="gzip")
    [problem] = verify(s3.prefix).problems
    assert problem.startswith(
        f"s3://b/{PREFIX}c=b/part-0000-0001.csv.zst: rows: expected 0, found"
    )


def test_every_problem_is_listed_with_its_object(s3):
    _, second, third, _ = (PREFIX + name for name in FILES)
    was = {key: sha256(s3.objects[key]) for key in (second, third)}
    del s3.objects[PREFIX + "part-0000-0001.csv"]
    s3.objects[second] = b"1,y\n" * 3
    s3.objects[third] = b"2,x\n" * 4
    found = verify(s3.prefix)
    assert found.problems == (
        f"{FIRST}: expected 12 bytes, 3 rows; found no object",
        f"{SECOND}: SHA-256: expected {was[second]}, found {sha256(s3.objects[second])}",
        f"{THIRD}: size: expected 12 bytes, found 16",
        f"{THIRD}: SHA-256: expected {was[third]}, found {sha256(s3.objects[third])}",
        f"{THIRD}: rows: expected 3, found 4",
    )
    assert found.summary.endswith("4 files, 12 rows, 48 B: 5 problems")


def test_a_wrong_row_count_in_the_manifest_is_found(s3):
    def one_more(manifest):
        manifest["entries"][1]["meta"]["record_count"] = 4

    s3.change_manifest(one_more)
    found = verify(s3.prefix)
    assert found.problems == (
        f"{SECOND}: rows: expected 4, found 3",
        f"s3://b/{PREFIX}_manifest.json: totals: its files add up to {{'content_length': 48, "
        "'record_count': 13}, it says {'content_length': 48, 'record_count': 12}",
    )


def test_what_readers_would_take_for_the_export_is_named(s3):
    for name in ("_committing.json", ".hidden", "logs/", "stray.csv", "day=1/part-0000-0001.csv"):
        s3.objects[PREFIX + name] = b""
    found = verify(s3.prefix)
    assert found.problems == ()
    assert sorted(found.unlisted) == [
        f"s3://b/{PREFIX}day=1/part-0000-0001.csv",
        f"s3://b/{PREFIX}stray.csv",
    ]


def test_an_object_that_is_denied_or_throttled_leaves_the_others_checked(s3):
    s3.objects[PREFIX + "part-0003-0001.csv"] = b"3,y\n" * 3
    codes = {FIRST: "AccessDenied", SECOND: "SlowDown"}

    def refuse(action, key):
        if action == "GetObject" and f"s3://b/{key}" in codes:
            raise failure(codes[f"s3://b/{key}"], "GetObject")

    s3.before = refuse
    first, second, fourth = verify(s3.prefix).problems
    assert first == f"{FIRST}: reading it failed: AccessDenied: No. (needs s3:GetObject)"
    assert second.startswith(f"{SECOND}: reading it failed: SlowDown: No.")
    assert fourth.startswith(f"{FOURTH}: SHA-256")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda s3, key: s3.objects.pop(key), "removed while it was read"),
        (lambda s3, key: s3.objects.update({key: b"new"}), "replaced while it was read"),
    ],
)
def test_an_object_that_changes_after_it_was_listed(s3, change, reason):
    key = PREFIX + "part-0001-0001.csv"
    once = threading.Event()

    def change_it(action, of):
        if action == "GetObject" and of == key and not once.is_set():
            once.set()
            change(s3, key)

    s3.before = change_it
    assert verify(s3.prefix).problems == (f"{SECOND}: it was {reason}; verify again",)


def test_a_manifest_that_is_replaced_meanwhile(s3):
    once = threading.Event()

    def another_run(action, key):
        if action == "GetObject" and key.endswith(".csv") and not once.is_set():
            once.set()
            s3.change_manifest(lambda manifest: manifest.update(as_of=8))

    s3.before = another_run
    with pytest.raises(LocationError, match=r"_manifest\.json was replaced while its files were"):
        verify(s3.prefix)


def test_nothing_there():
    with pytest.raises(LocationError) as raised:
        verify(ReadableS3().prefix)
    assert str(raised.value) == (
        f"there is no s3://b/{PREFIX}_manifest.json: no export to s3://b/{PREFIX} has been "
        "committed"
    )


def test_a_commit_under_way():
    s3 = ReadableS3()
    s3.objects[PREFIX + "_committing.json"] = b"{}"
    with pytest.raises(LocationError, match=r"_committing\.json is there: an export is being"):
        verify(s3.prefix)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.pop("author"),
        lambda m: m.pop("entries"),
        lambda m: m["author"].update(name="Amazon Redshift"),
        lambda m: m["entries"][0].update(url="s3://elsewhere/x.csv"),
        lambda m: m["entries"][0].pop("meta"),
        lambda m: m["entries"][0]["meta"].pop("sha256"),
        lambda m: m["entries"][0]["meta"].update(record_count="many"),
        lambda m: m.update(options=[]),
        lambda m: m["options"].update(format="yaml"),
        lambda m: m["options"].update(quote=7),
    ],
)
def test_a_manifest_that_is_not_ours(s3, change):
    s3.change_manifest(change)
    with pytest.raises(LocationError, match=rf"^s3://b/{PREFIX}_manifest\.json"):
        verify(s3.prefix)


def test_a_manifest_that_is_no_json(s3):
    s3.objects[PREFIX + "_manifest.json"] = b"{"
    with pytest.raises(
        LocationError, match=r"_manifest\.json is not a manifest that dbt-mzs3 writes"
    ):
        verify(s3.prefix)


@pytest.mark.parametrize(
    ("denied", "said"),
    [
        ("GetObject", r"reading s3://b/exports/orders/_manifest\.json failed: AccessDenied"),
        ("ListObjectsV2", "failed: AccessDenied"),
    ],
)
def test_a_location_that_is_denied(s3, denied, said):
    def refuse(action, key):
        if action == denied:
            raise failure("AccessDenied", action)

    s3.before = refuse
    with pytest.raises(S3Error, match=said) as raised:
        verify(s3.prefix)
    assert re.search("s3:ListBucket|s3:GetObject", str(raised.value))


@pytest.mark.parametrize(
    "location",
    ["s3://b/exports/orders", "s3://b/exports/orders/", "s3://b/exports/orders/_manifest.json"],
)
def test_a_location_is_named_by_itself_or_by_its_manifest(s3, monkeypatch, location):
    monkeypatch.setattr(export_verify_copy, "open_store", lambda _, at: bucket_of(s3, at.bucket))
    found = verify_copy({"default": AwsConnection()}, "default", location)
    assert (found.uri, found.files) == ("s3://b/exports/orders/", 4)


def test_a_manifest_may_be_at_the_top_of_a_bucket(monkeypatch):
    monkeypatch.setattr(
        export_verify_copy, "open_store", lambda _, at: bucket_of(ReadableS3(), at.bucket)
    )
    with pytest.raises(LocationError, match=r"^there is no s3://b/_manifest\.json"):
        verify_copy({"default": AwsConnection()}, "default", "s3://b/_manifest.json")


def test_a_folder_whose_name_ends_as_a_manifests_does_is_a_folder(s3, monkeypatch):
    monkeypatch.setattr(export_verify_copy, "open_store", lambda _, at: bucket_of(s3, at.bucket))
    with pytest.raises(LocationError, match=r"no s3://b/old_manifest\.json/_manifest\.json"):
        verify_copy({"default": AwsConnection()}, "default", "s3://b/old_manifest.json")


def test_names_that_are_none():
    with pytest.raises(ConfigError) as raised:
        verify_copy({"default": AwsConnection()}, "lake", "gs://b/x")
    assert raised.value.problems == (
        "aws_connection 'lake' is not in the profile; it has default",
        "location must start with s3://, not 'gs://b/x'",
    )
    with pytest.raises(ConfigError, match="location must start with s3://, not ''"):
        verify_copy({"default": AwsConnection()}, "default", None)
