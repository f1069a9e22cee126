"""The session on a server: how it is opened and closed, and what of its URL is shown."""

from __future__ import annotations

import traceback

import pytest

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark.remote import open_session, shown_server

pytest.importorskip("grpc")

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


@pytest.mark.parametrize("url", MALFORMED)
def test_nothing_of_a_url_that_is_none_is_shown(url: str) -> None:
    with pytest.raises(SparkJobError) as raised:
        open_session(url, {}, 0)
    assert "SECRET" not in "".join(traceback.format_exception(raised.value))


def test_a_server_is_shown_without_what_follows_its_address() -> None:
    for address in ("sc://host", "sc://host:1", "sc://[::1]:15002", "sc://a-b.c_d:1"):
        for rest in ("", "/", "/;token=t", "/;use_ssl=true;token=a%2Fb%3D"):
            assert shown_server(address + rest) == address
    assert all("SECRET" not in shown_server(url) for url in MALFORMED)
