"""Parts of messages: how many there are, and URLs without what is secret in them."""

import time

import pytest

from dbt.adapters.mzs3.text import (
    counted,
    followed_by,
    grouped,
    shown_bytes,
    shown_count,
    without_login,
    without_logins,
)


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 new objects"), (1, "1 new object"), (2, "2 new objects")]
)
def test_a_number_has_its_noun(count: int, text: str) -> None:
    assert counted(count, "new object") == text
    assert grouped(count, "new object") == text


def test_a_long_number_has_commas() -> None:
    assert grouped(1_234_567, "row") == "1,234,567 rows"


def test_a_sentence_more_begins_where_the_text_ends():
    assert followed_by("it failed", "Nothing is left") == "it failed. Nothing is left"
    assert followed_by("it failed. Cast it.", "Done") == "it failed. Cast it. Done"
    assert followed_by("it failed:\n  1/0\n  ^^^", "Done") == "it failed:\n  1/0\n  ^^^\nDone"


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 B"),
        (0.6, "1 B"),
        (999, "999 B"),
        (1023, "1023 B"),
        (1024, "1 kB"),
        (1536, "1.5 kB"),
        (1023.9 * 1024, "1 MB"),
        (256 << 20, "256 MB"),
        (1_500_000_000, "1.4 GB"),
        (31.4 * (1 << 30), "31.4 GB"),
        (3 << 50, "3 PB"),
        (5 << 60, "5 EB"),
        (5000 << 60, "5000 EB"),
    ],
)
def test_bytes_have_units_of_1024(size: float, shown: str) -> None:
    assert shown_bytes(size) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0"), (999, "999"), (1000, "1 k"), (84_213_004, "84.2 M"), (999_960, "1 M")],
)
def test_counts_have_units_of_1000(count: float, shown: str) -> None:
    assert shown_count(count) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("to https://me:hush@host/x failed", "to https://***@host/x failed"),
        ("https://me:hu@hush@host/x", "https://***@host/x"),
        ('"https://me:hu/hush@store/"', '"https://***@store/"'),
        ("https://hush@host/", "https://***@host/"),
        ("https://:hush@host/", "https://***@host/"),
        ("https://12:345hush@host/", "https://***@host/"),
        ("https://me:hush@[::1]:9000/", "https://***@[::1]:9000/"),
        ("s3a://AKIA:hu/hu+sh@lake/x/y", "s3a://***@lake/x/y"),
        ("k8s://https://me:hush@h:6443", "k8s://https://***@h:6443"),
        ("jdbc:postgresql://me:hush@db/x", "jdbc:postgresql://***@db/x"),
        (
            "https://a:hush@b, http://c:hush@d\\nhttps://e:hush@f",
            "https://***@b, http://***@d\\nhttps://***@f",
        ),
    ],
)
def test_a_text_shows_no_login(text: str, shown: str) -> None:
    assert without_logins(text) == shown
    assert without_logins(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "value 's3://lake,owner:jane@acme.com' in column x",
        '{"uri":"s3://lake","mail":"jane@acme.com"}',
        '{"uri":"s3://lake\\nx:y@z"}',
        "object s3://b/in/x://a:b@c.csv, line 3",
        "object s3://b/https://jane@acme.com/x:y@z.csv",
        "s3://b/a:b@c",
        "s3://arn:aws:s3:us-east-1:123456789012:accesspoint:lake/x@y",
        "https://acme.com/@jane",
        "https://acme.com:9000/lake/a@b",
        "https://acme.com?mail=a:b@c",
        "abfss://container@account.dfs.core.windows.net/x:y@z",
        "file:///home/a:b@c",
        "see http://acme.com (or jane:x@acme.com)",
        "jane@acme.com",
        "a://b",
    ],
)
def test_what_is_no_login_is_left_alone(text: str) -> None:
    assert without_logins(text) == text


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        ("k8s://https://me:hu sh@h", "k8s://https://***@h"),
        ("https://me:hu'/,\nhush@h/x", "https://***@h/x"),
        ("s3a://AKIA:hush@lake/tables", "s3a://***@lake/tables"),
        ("https://hu/hush@h", "https://***@h"),
        ("local[2]", "local[2]"),
        ("file:///home/jane@acme/x", "file:///home/jane@acme/x"),
        ("/home/jane@acme/x", "/home/jane@acme/x"),
    ],
)
def test_a_setting_shows_nothing_that_may_be_a_login(setting: str, shown: str) -> None:
    assert without_login(setting) == shown


@pytest.mark.parametrize("unit", ["a:", "x://", "a", "a.", "http://a:b", "@", ":@", "a://@"])
def test_a_long_text_takes_no_time(unit: str) -> None:
    began = time.process_time()
    for function in (without_logins, without_login):
        function("x http://" + unit * 100_000)
    assert time.process_time() - began < 1
