"""What holds for each unit test: it begins as in a new process, whatever ran before."""

from __future__ import annotations

import pytest
from support.process_state import clear


@pytest.fixture(autouse=True)
def _as_in_a_new_process() -> None:
    clear()
