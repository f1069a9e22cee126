import socket

import pytest
from moto.server import ThreadedMotoServer
from support.s3.answering import Answering

from dbt.adapters.mzs3.errors import S3Error
from dbt.adapters.mzs3.store.check import check_connection
from dbt.adapters.mzs3.store.connection import AwsConnection

ROLE = "arn:aws:iam::123456789012:role/copy"


@pytest.fixture(scope="module")
def endpoint():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def connection(endpoint, **changes):
    keys = {"access_key_id": "AKIAEXAMPLE", "secret_access_key": "the-secret-key"}
    return AwsConnection(
        name="lake",
        endpoint=endpoint,
        region="us-east-1",
        addressing_style="path",
        **{**keys, **changes},
    )


def test_a_connection_that_works_says_who_it_is_and_where(endpoint):
    line = check_connection(connection(endpoint))

    assert line.startswith("arn:aws:sts::")
    assert line.endswith(f" at {endpoint}")


def test_an_assumed_role_is_who_the_connection_is(endpoint):
    assert ":assumed-role/copy/" in check_connection(connection(endpoint, assume_role_arn=ROLE))


def test_no_credentials_at_all_is_an_error_that_says_where_to_put_them(endpoint):
    bare = connection(endpoint, access_key_id=None, secret_access_key=None)

    with pytest.raises(S3Error) as caught:
        check_connection(bare)

    assert "aws_connections.lake" in str(caught.value)
    assert "give keys under aws_connections" in str(caught.value)


def test_an_endpoint_where_nothing_listens_fails_at_once_and_is_named():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{free.getsockname()[1]}"

        with pytest.raises(S3Error, match=f"nothing answers at {endpoint}"):
            check_connection(connection(endpoint))


@pytest.mark.parametrize("status", [200, 404])
def test_a_page_for_people_at_the_endpoint_is_told_in_one_line(status):
    page = "<!DOCTYPE html><html><body>Console<br></body></html>"
    with Answering(lambda _: (status, page)) as server, pytest.raises(S3Error) as caught:
        check_connection(connection(server.endpoint))

    assert f"aws_connections.lake: asking S3 at {server.endpoint} failed" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_answer_of_sts_that_can_not_be_read_is_told_in_one_line():
    page = "<!DOCTYPE html><html><body>Console<br></body></html>"
    with Answering(lambda _: (200, page)) as server, pytest.raises(S3Error) as caught:
        check_connection(connection(server.endpoint, assume_role_arn=ROLE))

    text = str(caught.value)
    assert text.startswith("aws_connections.lake: asking STS who this is failed: ")
    assert "the answer can't be read" in text
    assert "\n" not in text
