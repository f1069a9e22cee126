"""The session on a server: how it is opened and closed, and what of its URL is shown."""

from __future__ import annotations

import os
import threading
import traceback
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark import remote
from dbt.adapters.mzs3.spark.remote import open_session, server_address
from dbt.adapters.mzs3.spark.session import get_or_create

grpc = pytest.importorskip("grpc")
RemoteSession = pytest.importorskip("pyspark.sql.connect.session").SparkSession

# What passes for a URL, or did, and what a client may say of it.
MALFORMED = [
    "sc://h:1;token=SECRET",
    "sc://h:1?token=SECRET",
    "sc://h:1#SECRET",
    "sc://SECRET@h:1",
    "sc://SECRET:1@h/;use_ssl=true",
    "sc://h/;token=dG9r/SECRET",
    "sc://h/;token=SECRET==",
    "sc://h/;token=SECRET?",
    "sc://h/;token=SE CRET",
    "sc://h/SECRET",
    "sc://h:SECRET/",
    "sc://h:70000/;token=SECRET",
    "sc://h/;session_id=SECRET",
    "sc://h/;grpc_keepalive_time_ms=SECRET",
]


@pytest.fixture(autouse=True)
def connect_mode():
    """PySpark knows by this variable that all of a process is over Connect, as it is with dbt."""
    yield
    os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)


@pytest.mark.parametrize("url", MALFORMED)
def test_nothing_of_a_url_that_is_none_is_shown(url: str) -> None:
    with pytest.raises(SparkJobError) as raised:
        open_session(url, {}, 0)
    assert "SECRET" not in "".join(traceback.format_exception(raised.value))


def test_a_spark_in_the_process_may_start_once_no_session_is_open_on_a_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote, "_end", lambda session: None)
    one, other = (SimpleNamespace(session_id=name) for name in ("one", "other"))
    for session in (one, other):
        monkeypatch.setitem(remote._running, session.session_id, remote.RunningTasks(session))
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "of dbt-mzs3")
    remote.close(one)
    remote.allow_local_spark()
    with pytest.raises(SparkJobError, match="while a session of Spark Connect is open"):
        get_or_create({})

    remote.close(other)
    assert "SPARK_CONNECT_MODE_ENABLED" in os.environ  # another session may be opening
    remote.allow_local_spark()
    assert "SPARK_CONNECT_MODE_ENABLED" not in os.environ


def test_a_server_is_shown_without_what_follows_its_address() -> None:
    for address in ("sc://host", "sc://host:1", "sc://[::1]:15002", "sc://a-b.c_d:1"):
        for rest in ("", "/", "/;token=t", "/;use_ssl=true;token=a%2Fb%3D"):
            assert server_address(address + rest) == address
    assert all("SECRET" not in server_address(url) for url in MALFORMED)


class Silent:
    """A server that takes requests and answers none; `asked` has their names."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.ended = threading.Event()

    def service(self, details: Any) -> Any:
        self.asked.append(details.method.rpartition("/")[2])
        return grpc.unary_unary_rpc_method_handler(lambda *_: self.ended.wait(60) and b"")


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Silent, int]]:
    """The server and its port; the client is patient for a moment."""
    monkeypatch.setattr(remote, "_ANSWER_S", 0.5)
    monkeypatch.setattr(remote, "_RETRIES", {"max_retries": 0})
    silent = Silent()
    server = grpc.server(ThreadPoolExecutor(8), handlers=[silent])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with warnings.catch_warnings():
        yield silent, port
    silent.ended.set()
    server.stop(0).wait()


def test_a_server_that_never_answers_is_not_waited_for(silent: tuple[Silent, int]) -> None:
    server, port = silent
    with pytest.raises(SparkJobError, match=f"localhost:{port}: .* does not answer") as raised:
        open_session(f"sc://localhost:{port}/;token=t", {}, 0)
    assert "`host` needs use_ssl=true" in str(raised.value)
    assert server.asked == ["Config", "ReleaseSession"]
    assert remote._running == {}


def test_a_server_without_tls_is_told_as_such(silent: tuple[Silent, int]) -> None:
    server, port = silent
    url = f"sc://127.0.0.1:{port}/;token=" + "SEC" + "RET"
    with pytest.raises(SparkJobError, match="does not answer") as raised:
        open_session(url, {}, 0)
    assert "dbt speaks TLS to it" in str(raised.value)
    assert "SECRET" not in "".join(traceback.format_exception(raised.value))
    assert server.asked == []


def test_a_session_is_given_back_when_opening_it_is_interrupted(
    silent: tuple[Silent, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    server, port = silent
    monkeypatch.setattr(RemoteSession, "registerProgressHandler", interrupt)
    with pytest.raises(KeyboardInterrupt):
        open_session(f"sc://127.0.0.1:{port}", {}, 0)
    assert server.asked == ["ReleaseSession"]
    assert remote._running == {}


def test_settings_that_a_server_refuses_are_left_out() -> None:
    class Client:
        def config(self, operation: Any) -> Any:
            if operation.HasField("is_modifiable"):
                asked.append(list(operation.is_modifiable.keys))
                return SimpleNamespace(pairs=[("a.static", "false"), ("a.free", "true")])
            asked.append([(pair.key, pair.value) for pair in operation.set.pairs])
            return SimpleNamespace(warnings=["a.free is deprecated"])

    asked: list[Any] = []
    session: Any = SimpleNamespace(client=Client())
    with pytest.warns(UserWarning, match=r"a\.free is deprecated"):
        remote._configure(session, {"a.static": "1", "a.free": "2"})
    assert asked == [["a.static", "a.free"], [("a.free", "2")]]
