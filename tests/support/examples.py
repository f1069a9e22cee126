"""How many examples a property is tried with: all of them, or a fifth where time matters."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

_SHARE = 1 if os.environ.get("MZS3_ALL_EXAMPLES") else 5


def examples(most: int, **how: Any) -> settings:
    """`most` examples for `make test-all`, a fifth of them otherwise."""
    return settings(max_examples=max(5, most // _SHARE), **how)
