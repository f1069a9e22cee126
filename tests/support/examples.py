"""How many examples a property is tried with: all, or fewer where time matters."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

_ALL, _FEW = (os.environ.get(f"MZS3_{which}_EXAMPLES") for which in ("ALL", "FEW"))


def examples(most: int, **how: Any) -> settings:
    """`most` examples for `make test-all`, hardly any for random orders, else a fifth of them."""
    return settings(max_examples=most if _ALL else 1 if _FEW else max(5, most // 5), **how)
