"""What a page about exports is asked for with."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt.adapters.mzs3.errors import ConfigError

MOST_DAYS = 3660
_FILE = "copy_report.html"


@dataclass(frozen=True)
class ReportRequest:
    """The exports of the last `days` days, of the history in `schema`; the page goes to `path`."""

    schema: str
    path: Path
    days: int

    @classmethod
    def of(cls, schema: Any, path: Any, days: Any) -> ReportRequest:
        """From a user's arguments. Raises ConfigError with all that is wrong with them."""
        problems = []
        if not isinstance(schema, str) or not all(part.strip() for part in schema.split(".")):
            problems.append(
                f"schema must be a name such as analytics or catalog.schema, not {schema!r}"
            )
        if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= MOST_DAYS:
            problems.append(f"days must be a whole number from 1 to {MOST_DAYS}, not {days!r}")
        if not isinstance(path, str) or not path.strip():
            problems.append(f"path must name a file, such as target/{_FILE}, not {path!r}")
        elif path.endswith("/") or os.path.isdir(path):  # noqa: PTH112 - False for what can't be a path
            problems.append(
                f"path must name a file, and {path!r} is a directory; a file in it would be "
                f"{str(Path(path) / _FILE)!r}"
            )
        if problems:
            raise ConfigError("copy_report", problems)
        return cls(schema, Path(path), days)
