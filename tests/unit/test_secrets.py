"""A secret in every option that is declared as one is shown nowhere, nor is one in a URL."""

from __future__ import annotations

import time

import pytest
from dbt_common.exceptions import DbtRuntimeError, scrub_secrets

from dbt.adapters.mzs3.credentials import Mzs3Credentials
from dbt.adapters.mzs3.options.option import options_of, secret_values
from dbt.adapters.mzs3.runner import submit_plan
from dbt.adapters.mzs3.secrets import (
    HIDDEN,
    hide_in_error,
    hide_login,
    hide_logins,
    hide_secrets,
    quoted_word,
    secret_settings,
)
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.submit.options import SubmitOptions

OF_CONNECTIONS = [key for key, one in options_of(AwsConnection).items() if one.secret]
PLANTED = {key: f"planted-{key}" for key in OF_CONNECTIONS}
SETTINGS = {"spark.hadoop.fs.s3a.secret.key": "planted-setting"}
OTHERS = {key: f"planted-{key}" for key in ("token", "password", "connection_string_suffix")}
ROLE = "arn:aws:iam::123456789012:role/copy"


def profile(**changes: object) -> Mzs3Credentials:
    connection = {"region": "eu-west-1", "assume_role_arn": ROLE, **PLANTED}
    return Mzs3Credentials.from_dict(
        {
            "method": "thrift",
            "host": "spark.acme.com",
            "user": "dbt",
            "schema": "raw",
            "aws_connections": {"lake": connection},
            "spark_submit": {"master": "yarn", "conf": SETTINGS},
            "server_side_parameters": {"spark.hadoop.password": "planted-parameter"},
            **OTHERS,
            **changes,
        }
    )


def test_what_is_secret_is_declared() -> None:
    ids = ["access_key_id", "secret_access_key", "session_token", "external_id"]
    assert ids == OF_CONNECTIONS
    assert [key for key, one in options_of(SubmitOptions).items() if one.secret] == ["conf"]


def test_whatever_shows_a_profile_shows_no_secret() -> None:
    made = profile()
    plan = submit_plan(made, "dbt")
    for shown in (
        *(repr(made), str(made.to_dict()), str(dict(made.connection_info())), made.unique_field),
        *(repr(made.connections), repr(made.submit_options), repr(plan)),
    ):
        assert "planted" not in shown


def test_no_error_of_a_profile_repeats_a_secret() -> None:
    wrong = {key: [value] for key, value in PLANTED.items()}
    with pytest.raises(DbtRuntimeError) as raised:
        profile(
            aws_connections={"lake": {**wrong, "regoin": "planted", "endpoint": "a:planted@b"}},
            spark_submit={"conf": {"hive.key": "planted"}, "timeout": -1},
        )
    assert "did you mean region?" in str(raised.value)
    assert "planted" not in str(raised.value)


def test_all_secrets_are_kept_out_of_the_log_of_a_job() -> None:
    plan = submit_plan(profile(), "dbt")
    secrets = {*PLANTED.values(), "planted-setting", "planted-parameter"}
    assert secrets <= {*plan.secrets}
    assert "planted" not in hide_secrets(plan.secrets, " ".join(secrets))


def test_a_word_is_repeated_and_what_may_hold_a_password_is_not() -> None:
    assert quoted_word("sqs_notification") == "'sqs_notification'"
    for given in ("AKIA:planted", "https://me:planted@host", ["planted"], "x" * 81):
        assert "not shown" in quoted_word(given)


def test_our_mask_is_that_of_dbt() -> None:
    assert hide_secrets(["planted"], "a planted b") == scrub_secrets("a planted b", ["planted"])
    assert HIDDEN in hide_secrets(["planted"], "planted")


def test_a_secret_that_begins_with_another_one_is_hidden_whole() -> None:
    assert hide_secrets(["minio", "minio123"], "minio123 of minio") == "***** of *****"


@pytest.mark.parametrize("cause", ['key "p"w<1"', '{"key": "p\\"w\\u003c1"}'])
def test_an_error_whose_cause_shows_a_secret_as_it_is_or_in_json_has_no_cause(cause: str) -> None:
    error = ValueError("no")
    error.__cause__ = ValueError(cause)
    hide_in_error(['p"w<1'], error)
    assert error.__cause__ is None
    error.__cause__ = ValueError("another")
    hide_in_error(['p"w<1'], error)
    assert error.__cause__ is not None


def test_the_values_of_secret_options_and_settings_are_found() -> None:
    found = secret_values(AwsConnection("lake", **PLANTED))
    assert set(found) == {*PLANTED.values()}
    assert secret_settings({**SETTINGS, "spark.master": "yarn"}) == ["planted-setting"]
    harmless = ("security.credentials.hive.enabled", "security.credentials.renewalRatio")
    assert not secret_settings(
        dict.fromkeys(["fs.s3a.aws.credentials.provider", *harmless], "false")
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("to https://me:hush@host/x failed", "to https://*****@host/x failed"),
        ("https://me:hu@hush@host/x", "https://*****@host/x"),
        ('"https://me:hu/hush@store/"', '"https://*****@store/"'),
        ("https://hush@host/", "https://*****@host/"),
        ("https://:hush@host/", "https://*****@host/"),
        ("https://12:345hush@host/", "https://*****@host/"),
        ("https://me:hush@[::1]:9000/", "https://*****@[::1]:9000/"),
        ("s3a://AKIA:hu/hu+sh@lake/x/y", "s3a://*****@lake/x/y"),
        ("k8s://https://me:hush@h:6443", "k8s://https://*****@h:6443"),
        ("jdbc:postgresql://me:hush@db/x", "jdbc:postgresql://*****@db/x"),
        (
            "https://a:hush@b, http://c:hush@d\\nhttps://e:hush@f",
            "https://*****@b, http://*****@d\\nhttps://*****@f",
        ),
    ],
)
def test_a_text_shows_no_login(text: str, shown: str) -> None:
    assert hide_logins(text) == shown
    assert hide_logins(shown) == shown


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
    assert hide_logins(text) == text


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        ("k8s://https://me:hu sh@h", "k8s://https://*****@h"),
        ("https://me:hu'/,\nhush@h/x", "https://*****@h/x"),
        ("s3a://AKIA:hush@lake/tables", "s3a://*****@lake/tables"),
        ("https://hu/hush@h", "https://*****@h"),
        ("local[2]", "local[2]"),
        ("file:///home/jane@acme/x", "file:///home/jane@acme/x"),
        ("/home/jane@acme/x", "/home/jane@acme/x"),
    ],
)
def test_a_setting_shows_nothing_that_may_be_a_login(setting: str, shown: str) -> None:
    assert hide_login(setting) == shown


@pytest.mark.parametrize("unit", ["a:", "x://", "a", "a.", "http://a:b", "@", ":@", "a://@"])
def test_a_long_text_takes_no_time(unit: str) -> None:
    began = time.process_time()
    for function in (hide_logins, hide_login):
        function("x http://" + unit * 100_000)
    assert time.process_time() - began < 1
