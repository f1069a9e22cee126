"""A secret in every option that is declared as one is shown nowhere."""

from __future__ import annotations

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.credentials import Mzs3Credentials
from dbt.adapters.mzs3.options.option import options_of
from dbt.adapters.mzs3.options.secrets import secret_settings, secret_values, without
from dbt.adapters.mzs3.runner import submit_plan
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
    assert "planted" not in without(plan.secrets, " ".join(secrets))


def test_the_values_of_secret_options_and_settings_are_found() -> None:
    assert set(secret_values(AwsConnection("lake", **PLANTED))) == {*PLANTED.values()}
    assert secret_settings({**SETTINGS, "spark.master": "yarn"}) == ["planted-setting"]
