from collections.abc import Iterator

import psycopg
import pytest
from support.golden.postgres import Postgres

# Settings that change what COPY writes; the encoder's output is defined under these.
SETTINGS = {
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "client_encoding": "UTF8",
}


@pytest.fixture(scope="session")
def postgres(postgres_uri: str) -> Iterator[Postgres]:
    with psycopg.connect(postgres_uri, autocommit=True) as connection:
        for name, value in SETTINGS.items():
            connection.execute("select set_config(%s, %s, false)", (name, value))
        yield Postgres(connection)
