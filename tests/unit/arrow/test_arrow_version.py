"""Workers with a pyarrow that is too old are told of, as their values would be wrong."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from dbt.adapters.mzs3.arrow.version import OLDEST, require_version
from dbt.adapters.mzs3.errors import ExecutorError

ROOT = Path(__file__).parents[3]


def test_an_old_version_is_an_error_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    require_version()
    monkeypatch.setattr(pa, "__version__", "23.0.1")
    with pytest.raises(ExecutorError) as caught:
        require_version()
    assert caught.value.message == (
        "the Python of Spark's workers has pyarrow 23.0.1, with which some values would be "
        "wrong: install pyarrow 24 or later there"
    )


def test_what_is_installed_is_not_older() -> None:
    for file in ("pyproject.toml", "scripts/environment.sh"):
        assert f'"pyarrow>={OLDEST}"' in (ROOT / file).read_text()
