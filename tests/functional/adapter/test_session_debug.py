"""`dbt debug` checks Spark and each AWS connection."""

import socket
from pathlib import Path

import pytest
import yaml
from dbt.tests.util import run_dbt_and_capture


@pytest.fixture(scope="module")
def closed_endpoint():
    """An address of this machine where nothing listens, and nothing will during the test."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


class TestDebug:
    def test_each_connection_says_who_it_is(self, project, s3_endpoint):
        ok, log = run_dbt_and_capture(["debug"])

        assert ok
        assert f"aws default: arn:aws:sts::123456789012:user/moto at {s3_endpoint}" in log


class TestDebugWithAConnectionThatFails:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target, aws_connection, closed_endpoint):
        broken = {**aws_connection, "endpoint": closed_endpoint}
        return {
            **dbt_profile_target,
            "aws_connections": {"default": aws_connection, "lake": broken},
        }

    def test_it_fails_and_names_the_connection_and_the_endpoint(self, project, closed_endpoint):
        ok, log = run_dbt_and_capture(["debug"], expect_pass=False)

        assert not ok
        assert f"aws_connections.lake: nothing answers at {closed_endpoint}" in log
        assert "aws default: arn:aws:" in log


class TestDebugWithAProfileThatIsWrong:
    def test_every_problem_of_the_connections_is_shown_at_once(self, project, profiles_root):
        path = Path(profiles_root) / "profiles.yml"
        profile = yaml.safe_load(path.read_text())
        for target in profile["test"]["outputs"].values():
            target["aws_connections"] = {
                "default": {"regoin": "x"},
                "lake": {"endpoint": "s3.lan"},
            }
        path.write_text(yaml.safe_dump(profile))

        ok, log = run_dbt_and_capture(["debug"], expect_pass=False)

        assert not ok
        assert "aws_connections.default.regoin is not an option of aws_connections" in log
        assert "aws_connections.lake.endpoint must start with http:// or https://" in log
