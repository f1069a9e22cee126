"""What an ingestion has to say while it runs, beside its report and its errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _nobody(text: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True)
class Voice:
    """Called with one line that names the source: `warn` for what a user should look into."""

    warn: Callable[[str], None] = _nobody
    say: Callable[[str], None] = _nobody


SILENT = Voice()
