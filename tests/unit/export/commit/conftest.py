"""An S3 in memory for each test."""

from __future__ import annotations

import pytest
from support.s3.memory import MemoryS3


@pytest.fixture
def s3() -> MemoryS3:
    return MemoryS3()
