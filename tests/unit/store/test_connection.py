"""AWS connections of the profile: every problem at once, no value repeated, no secret shown."""

from typing import Any

import pytest

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.store.connection import AwsConnection, parse_connections


def problems(**keys: Any) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as failure:
        parse_connections({"lake": keys})
    return failure.value.problems


def test_without_any_there_is_the_credential_chain() -> None:
    assert parse_connections(None) == {"default": AwsConnection()}


def test_all_keys_are_read() -> None:
    keys = {
        "region": "eu-west-1",
        "endpoint": "http://127.0.0.1:9000",
        "addressing_style": "path",
        "access_key_id": "AKIA",
        "secret_access_key": "s3cr3t",
        "session_token": "t0ken",
        "assume_role_arn": "arn:aws:iam::123456789012:role/copy",
        "external_id": "mz_1234",
    }
    assert parse_connections({"lake": keys})["lake"] == AwsConnection("lake", **keys)


def test_the_repr_shows_no_secret() -> None:
    connection = AwsConnection(
        "lake", access_key_id="AKIA", secret_access_key="s", external_id="e"
    )
    assert repr(connection).count("=") == 6
    assert "AKIA" not in repr(connection)


def test_all_problems_of_all_connections_at_once() -> None:
    with pytest.raises(ConfigError) as failure:
        parse_connections({"a": {"acces_key_id": "hush"}, "b": ["hush"], "c": {"endpoint": "x:1"}})
    assert len(failure.value.problems) == 3
    assert "hush" not in str(failure.value)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"access_key_id": "A"}, "aws_connections.lake.access_key_id needs secret_access_key"),
        ({"secret_access_key": "A"}, "secret_access_key needs access_key_id beside it"),
        ({"external_id": "A"}, "external_id needs assume_role_arn beside it"),
        ({"addressing_style": "host"}, "addressing_style must be one of auto, path, virtual"),
        ({"endpoint": "127.0.0.1:5000"}, "endpoint must start with http:// or https://"),
        ({"assume_role_arn": "role/copy"}, "assume_role_arn must be an ARN"),
        ({"access_key_id": "", "secret_access_key": "x"}, "access_key_id is empty"),
        ({"key": "A"}, "aws_connections.lake.key is not an option of aws_connections"),
    ],
)
def test_what_is_refused(keys: dict[str, Any], problem: str) -> None:
    assert any(problem in found for found in problems(**keys))


@pytest.mark.parametrize(
    ("given", "pays"), [(True, True), ("true", True), ("False", False), (None, False)]
)
def test_who_pays_is_told(given: object, pays: bool) -> None:
    declared = {"lake": {"requester_pays": given}}
    assert parse_connections(declared)["lake"].requester_pays is pays


def test_who_pays_is_true_or_false() -> None:
    with pytest.raises(ConfigError, match=r"lake\.requester_pays must be true or false"):
        parse_connections({"lake": {"requester_pays": "me"}})


@pytest.mark.parametrize(
    "endpoint",
    [
        *("http://me:hush@store:9000", "https://hush@store/", "http://me:hu/hush@store"),
        *("https://store/?token=hush", "https://store/#hush", "me:hush@store:9000"),
    ],
)
def test_an_endpoint_with_a_password_is_refused_and_not_repeated(endpoint: str) -> None:
    [problem] = problems(endpoint=endpoint)
    assert "must be an address without a user, a password or parameters" in problem
    assert "hush" not in problem


@pytest.mark.parametrize("endpoint", ["http://store\nx", "http://store x", "http://store\x7f"])
def test_an_endpoint_is_one_word(endpoint: str) -> None:
    [problem] = problems(endpoint=endpoint)
    wrong = "a space" if " " in endpoint else "a control character"
    assert problem.startswith(f"aws_connections.lake.endpoint has {wrong} in it")


@pytest.mark.parametrize("key", ["access_key_id", "secret_access_key", "session_token"])
def test_a_key_of_two_lines_is_refused_as_errors_of_its_header_would_have_it(key: str) -> None:
    keys = {"access_key_id": "a", "secret_access_key": "b", key: "planted\nkey"}
    with pytest.raises(ConfigError) as raised:
        parse_connections({"lake": keys})
    [problem] = raised.value.problems
    assert (
        problem == f"aws_connections.lake.{key} has a control character in it, such as a newline"
    )
