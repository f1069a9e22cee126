import subprocess
import sys

import pytest
from dbt.adapters.spark.connections import SparkCredentials
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.credentials import Mzs3Credentials

SECRETS = {
    "access_key_id": "AKIASECRETKEYID",
    "secret_access_key": "the-secret-key",
    "session_token": "the-session-token",
}
OTHER_SECRETS = {
    "token": "the-token",
    "password": "the-password",
    "connection_string_suffix": "PWD=the-suffix",
}
PROFILE = {
    "method": "session",
    "schema": "analytics",
    "aws_connections": {"default": {"region": "eu-west-1", **SECRETS}},
}


def credentials(**changes):
    profile = {**PROFILE, **changes}
    Mzs3Credentials.validate(Mzs3Credentials.translate_aliases(profile))
    return Mzs3Credentials.from_dict(profile)


def test_a_session_needs_no_host():
    assert credentials().host is None
    assert credentials().unique_field == "session"


def test_thrift_needs_a_host():
    with pytest.raises(DbtRuntimeError, match="host"):
        credentials(method="thrift")


SERVER = "sc://spark.acme.com:15002/;use_ssl=true;token=the-connect-token"


def test_the_token_of_a_connect_server_is_shown_nowhere():
    profile = credentials(method="connect", host=SERVER)

    assert profile.connect_server == SERVER
    assert profile.unique_field == "sc://spark.acme.com:15002"
    shown = [repr(profile), str(profile.to_dict()), str(dict(profile.connection_info()))]
    for text in shown:
        assert "sc://spark.acme.com:15002" in text
        assert "the-connect-token" not in text


@pytest.mark.parametrize(
    ("host", "wrong"),
    [
        *((host, "a / before the first ;") for host in (None, "", "spark.acme.com", "sc://")),
        *((host, "a / before the first ;") for host in ("sc://a b", "sc://a;token=SECRET")),
        *((host, "a / before the first ;") for host in ("sc://SECRET@a", "sc://a?token=SECRET")),
        *((host, "/ as %2F and = as %3D") for host in ("sc://a/SECRET", "sc://a/;SECRET")),
        *((host, "/ as %2F and = as %3D") for host in ("sc://a/;token=SE/T", "sc://a/;token=SE=")),
    ],
)
def test_a_connect_server_has_a_url(host, wrong):
    with pytest.raises(DbtRuntimeError, match=r"needs host: sc://HOST:PORT") as raised:
        credentials(method="connect", host=host, executor_timeout=-1, token="the-token")
    assert len(raised.value.msg.splitlines()) == 3
    assert wrong in raised.value.msg
    assert "the-token" not in str(raised.value)
    assert "SE" not in str(raised.value)


@pytest.mark.parametrize(
    "host", ["sc://a", "sc://a:1", "sc://[::1]:15002/", "sc://a/;token=a%2Fb%3D+"]
)
def test_what_a_connect_server_needs_may_follow_its_address(host):
    assert credentials(method="connect", host=host).has_session


def test_other_methods_hold_no_session(monkeypatch):
    assert credentials().has_session
    assert credentials().connect_server is None
    monkeypatch.setattr(SparkCredentials, "__post_init__", lambda _: None)  # wants their drivers
    assert not credentials(method="odbc", host="h", endpoint="e").has_session


def test_ansi_mode_is_left_to_spark():
    assert "spark.sql.ansi.enabled" not in credentials().server_side_parameters


@pytest.mark.parametrize("value", ["false", False])
def test_ansi_mode_is_what_the_profile_says(value):
    parameters = {"spark.sql.ansi.enabled": value}

    assert credentials(server_side_parameters=parameters).server_side_parameters == {
        "spark.sql.ansi.enabled": "false"
    }


def test_connections_are_parsed_and_default_is_always_there():
    lake = {"region": "us-east-1", "assume_role_arn": "arn:aws:iam::123456789012:role/copy"}
    parsed = credentials(aws_connections={"lake": lake}).connections

    assert sorted(parsed) == ["default", "lake"]
    assert parsed["lake"].assume_role_arn == lake["assume_role_arn"]


def test_every_problem_of_the_connections_is_in_one_error():
    with pytest.raises(DbtRuntimeError) as caught:
        credentials(
            aws_connections={
                "default": {"regoin": "x"},
                "lake": {"access_key_id": "AKIASECRETKEYID"},
            }
        )

    assert "regoin" in str(caught.value)
    assert "aws_connections.lake" in str(caught.value)
    assert "AKIASECRETKEYID" not in str(caught.value)


def test_jinjas_target_and_dbt_debug_have_the_connections_but_no_secret():
    shown = dict(credentials().connection_info())

    assert shown["schema"] == "analytics"
    assert shown["method"] == "session"
    assert shown["aws_connections"] == {"default": {"region": "eu-west-1", "endpoint": None}}


@pytest.mark.parametrize(
    "show", [repr, str, Mzs3Credentials.to_dict, lambda shown: dict(shown.connection_info())]
)
def test_nothing_that_shows_credentials_shows_a_secret(show):
    parameters = {"spark.hadoop.fs.s3a.secret.key": "the-parameter"}
    made = credentials(**OTHER_SECRETS, server_side_parameters=parameters)
    text = str(show(made))

    for secret in (*SECRETS.values(), *OTHER_SECRETS.values(), "the-parameter"):
        assert secret not in text


def test_what_dbt_serializes_is_valid_and_keeps_the_names():
    parameters = {"spark.master": "local[2]"}
    made = credentials(token="the-token", server_side_parameters=parameters)
    shown = made.to_dict(omit_none=True)

    Mzs3Credentials.validate(shown)
    assert shown["token"] == "*****"
    assert "password" not in shown
    assert shown["server_side_parameters"] == {"spark.master": "*****"}
    assert made.token == "the-token"
    assert made.server_side_parameters == parameters


def test_dbt_debug_shows_the_master_and_the_warehouse_all_the_same():
    parameters = {"spark.master": "local[2]", "spark.sql.warehouse.dir": "/tables"}
    shown = dict(credentials(server_side_parameters=parameters).connection_info())

    assert {key: shown[key] for key in parameters} == parameters


def test_no_alias_renames_a_models_config():
    assert Mzs3Credentials._ALIASES == {}


def test_work_waits_for_executors_for_a_while_or_for_ever():
    assert credentials().executor_timeout == 600
    assert credentials(executor_timeout=0).executor_timeout == 0
    with pytest.raises(DbtRuntimeError, match="executor_timeout is the number of seconds"):
        credentials(executor_timeout=-1)


THRIFT = {"method": "thrift", "host": "spark.acme.com", "user": "dbt"}


def test_jobs_are_submitted_where_the_profile_says_how():
    assert not credentials(**THRIFT).runs_jobs
    made = credentials(**THRIFT, spark_submit={})
    assert made.runs_jobs
    assert made.submit_options is not None


def test_settings_of_jobs_are_shown_nowhere_but_the_master():
    conf = {"spark.hadoop.javax.jdo.option.ConnectionPassword": "the-metastores-password"}
    made = credentials(**THRIFT, spark_submit={"master": "yarn", "conf": conf})

    assert dict(made.connection_info())["spark_submit"] == {"master": "yarn"}
    for shown in (repr(made), str(made.to_dict()), str(dict(made.connection_info()))):
        assert "the-metastores-password" not in shown
    Mzs3Credentials.validate(made.to_dict(omit_none=True))


def test_jobs_that_are_submitted_are_for_methods_without_a_session():
    with pytest.raises(DbtRuntimeError) as caught:
        credentials(spark_submit={"deploy_mode": "cluster"}, executor_timeout=-1)

    assert "executor_timeout is the number of seconds" in str(caught.value)
    assert "spark_submit is for method: thrift, http and odbc" in str(caught.value)
    assert "spark_submit.deploy_mode can't be cluster" in str(caught.value)


@pytest.mark.parametrize("method", ["thrift", "http", "session"])
def test_a_host_with_a_password_is_refused_and_not_repeated(method):
    with pytest.raises(DbtRuntimeError, match="host must be the name of a host") as caught:
        credentials(method=method, host="https://me:the-password@spark.acme.com", user="dbt")
    assert "the-password" not in str(caught.value)


def test_what_dbt_debug_shows_of_urls_has_no_password():
    parameters = {
        "spark.master": "k8s://https://me:the-password@k8s.acme.com",
        "spark.sql.warehouse.dir": "s3a://AKIA:the-password@lake/tables",
    }
    shown = str(dict(credentials(server_side_parameters=parameters).connection_info()))
    assert "https://*****@k8s.acme.com" in shown
    assert "s3a://*****@lake/tables" in shown
    made = credentials(**THRIFT, spark_submit={"master": parameters["spark.master"]})
    assert "the-password" not in shown + str(dict(made.connection_info()))


def test_without_pyspark_a_sentence_names_the_extras():
    program = "import sys; sys.modules['pyspark'] = None; import dbt.adapters.mzs3"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    said = done.stderr.partition("DbtRuntimeError: ")[2]
    assert "dbt-mzs3[session]" in said
    assert "dbt-mzs3[connect]" in said
    assert "ModuleNotFoundError" not in done.stderr
