"""No server, page, log or command line has a key of the profile, whatever a run does."""

from __future__ import annotations

import base64
import re
import socket
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote, urljoin, urlsplit

import pytest
from support.spark.cluster_project import (
    CLUSTER,
    RUN,
    SECRET_ACCESS_KEY,
    Project,
    Roads,
    start_connect,
)
from support.spark.standalone import HOSTS, standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(1800)]

_TOKEN = "mzs3-cluster-token-0b9d/4e7f="
_SECRETS = [one.encode() for one in (SECRET_ACCESS_KEY, _TOKEN, quote(_TOKEN, safe=""))]
# As they are, as hexadecimal digits, and in base64, wherever they begin there.
_FORMS = [
    *_SECRETS,
    *(secret.hex().encode() for secret in _SECRETS),
    *(base64.b64encode(b"\0" * n + secret)[4:-4] for secret in _SECRETS for n in range(3)),
]
_MOST_PAGES = 150
# What a line of the log says, and the lines below it.
_CACHED_PLAN = re.compile(rb"Using cached plan.*(?:\n(?!\d\d:\d\d:\d\d ).*)*")
LOG4J = """
rootLogger.level = debug
rootLogger.appenderRef.console.ref = console
# It logs the headers of all requests, and so the token.
logger.grpc.name = org.sparkproject.connect.grpc.netty.NettyServerHandler
logger.grpc.level = info
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c: %m%n%ex
"""


def pages(addresses: Iterable[str]) -> dict[str, bytes]:
    """The pages, and those of the same servers that they link to."""
    found: dict[str, bytes] = {}
    waiting = [address.rstrip("/") + "/" for address in addresses]
    servers = {urlsplit(address).netloc for address in waiting}
    while waiting and len(found) < _MOST_PAGES:
        address = waiting.pop(0)
        if address in found or "/static/" in address or "kill" in address:
            continue
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                found[address] = answer.read()
        except HTTPError as exc:
            found[address] = exc.read()
        for link in re.findall(rb"(?:href|src)=[\"']([^\"'#]+)", found[address]):
            url = urljoin(address, link.decode().replace("&amp;", "&"))
            if (
                urlsplit(url).netloc in servers and ".sort=" not in url
            ):  # the same, otherwise sorted
                waiting.append(url)
    return found


def command_lines() -> dict[str, bytes]:
    """Those of all processes."""
    found = {}
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found[str(process)] = process.read_bytes()
        except OSError:
            continue
    return found


def files_below(folders: Iterable[Path]) -> dict[str, bytes]:
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in files if path.name != "profiles.yml"}


def shown(seen: dict[str, bytes]) -> list[str]:
    return [name for name, content in seen.items() if any(form in content for form in _FORMS)]


def run(project: Project, roads: Roads, addresses: Callable[[], list[str]]) -> dict[str, bytes]:
    """What is seen while each model is run."""
    seen: dict[str, bytes] = {}

    def look(*_: str) -> None:
        seen.update(command_lines())
        seen.update(pages(addresses()))

    looked = roads.when_under_way(look)
    code, console = project.run(*RUN, flags=["--debug"])
    assert looked == {*RUN}, console
    assert code == 0, console
    return {**seen, "console": console.encode()}


@pytest.fixture
def loud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Settings with which Spark keeps events, and all of its processes log what they can."""
    (tmp_path / "events").mkdir()
    (tmp_path / "log4j2.properties").write_text(LOG4J)
    debug = f"-Dlog4j2.configurationFile=file:{tmp_path / 'log4j2.properties'}"
    monkeypatch.setenv("SPARK_DAEMON_JAVA_OPTS", debug)
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",  # to be searched
        "spark.eventLog.dir": str(tmp_path / "events"),
        "spark.driver.extraJavaOptions": debug,
        "spark.executor.extraJavaOptions": debug,
    }


def ui() -> tuple[str, dict[str, str]]:
    """The address of the UI of a Spark with these settings."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    settings = {"spark.ui.enabled": "true", "spark.ui.port": port, "spark.log.level": "DEBUG"}
    return f"http://127.0.0.1:{port}/", settings


def require_loud(seen: dict[str, bytes], page: str) -> None:
    assert any(address.startswith(f"{page}SQL/execution") for address in seen)
    logs = [name for name, content in seen.items() if b" DEBUG " in content]
    for log in ("master.log", "worker-1.log", "stderr", "spark.log"):
        assert any(name.endswith(log) for name in logs), log


def test_a_standalone_cluster_shows_no_secret(
    project: Callable[..., Project], roads: Roads, loud: dict[str, str], tmp_path: Path
) -> None:
    page, settings = ui()
    # As with a shell, a file of log4j would be held back to warnings, if it has this level.
    settings["spark.driver.extraJavaOptions"] = CLUSTER["spark.driver.extraJavaOptions"]
    with standalone_cluster(tmp_path / "cluster", roads.environments) as cluster:
        parameters = {**CLUSTER, **loud, **settings, "spark.master": cluster.master}
        on_it = project({"method": "session", "server_side_parameters": parameters})
        seen = run(on_it, roads, lambda: [page, *cluster.pages])
    seen.update(files_below([tmp_path]))
    require_loud(seen, page)
    assert shown(seen) == []


def test_jobs_of_spark_submit_show_no_secret(
    on_thrift: Callable[..., Project], roads: Roads, loud: dict[str, str], tmp_path: Path
) -> None:
    page, settings = ui()
    settings |= {"spark.hadoop.acme.password": SECRET_ACCESS_KEY}
    with standalone_cluster(tmp_path / "cluster", roads.environments) as cluster:
        on_it = on_thrift(cluster.master, **{**CLUSTER, **loud, **settings})
        seen = run(on_it, roads, lambda: [page, *cluster.pages])
    seen.update(files_below([tmp_path]))
    require_loud(seen, page)
    assert any("acme.password" in content.decode(errors="replace") for content in seen.values())
    assert shown(seen) == []


def test_a_connect_server_shows_no_secret(
    project: Callable[..., Project],
    roads: Roads,
    loud: dict[str, str],
    tmp_path: Path,
) -> None:
    environment = {"SPARK_CONNECT_AUTHENTICATE_TOKEN": _TOKEN}
    endpoint = roads.workers[HOSTS[0]].endpoint
    with start_connect(tmp_path / "server", endpoint, loud, environment) as server:
        # To it alone, PySpark's client sends a token without TLS.
        address = server.url.replace("127.0.0.1", "localhost")
        refused = project({"method": "connect", "host": f"{address}/;token=another"})
        code, console = refused.run("export")
        assert code != 0
        assert "refused the token" in console
        host = f"{address}/;token={quote(_TOKEN, safe='')}"
        on_it = project({"method": "connect", "host": host})
        seen = run(on_it, roads, lambda: [server.page, f"{server.page}/connect"])
        code, console = on_it.run("read_again", flags=["--debug"])
        assert code == 0, console
        seen["read again"] = console.encode()
    seen.update(files_below([tmp_path]))
    assert any(address.startswith(f"{server.page}/connect/session") for address in seen)
    log = seen[str(server.log)]
    assert b" DEBUG " in log
    told = _CACHED_PLAN.findall(log)
    assert told  # those of SQL, as dbt runs it
    assert not [plan for plan in told if b"python_udf" in plan]
    assert shown(seen) == []
