"""A run of an export: what those learn who watch it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.mzs3.copy.commit.protocol import StaleFilesError
from dbt.adapters.mzs3.copy.job import _Run
from dbt.adapters.mzs3.copy.result import CopyResult
from dbt.adapters.mzs3.errors import CopyError

EXPORT: Any = SimpleNamespace(
    node="model.shop.orders", location=SimpleNamespace(uri="s3://b/p/"), as_of=17
)


def test_old_files_that_stay_are_an_error_of_an_export_that_is_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> None:
        raise StaleFilesError("files of the one before it are still there")

    nothing: Any = None
    committed: list[CopyResult] = []
    watch: Any = SimpleNamespace(committed=committed.append)
    run = _Run(EXPORT, nothing, nothing, nothing, nothing, watch)
    file: Any = SimpleNamespace(rows=12, bytes=45)
    monkeypatch.setattr(run, "_upload", lambda: run._files.append(file))
    monkeypatch.setattr(run, "_commit", refuse)
    with pytest.raises(CopyError, match=r"^model\.shop\.orders: files of the one before it"):
        run.to_the_end()
    assert committed == [
        CopyResult(
            rows=12,
            location="s3://b/p/",
            manifest="s3://b/p/_manifest.json",
            files=1,
            bytes=45,
            as_of=17,
        )
    ]


def test_whoever_watches_learns_that_all_begins_again() -> None:
    nothing: Any = None
    heard: list[str] = []
    watch: Any = SimpleNamespace(begin_again=heard.append)
    progress: Any = SimpleNamespace(begin_again=lambda: heard.append("progress"))
    run = _Run(EXPORT, nothing, nothing, nothing, progress, watch)
    run._begin_again("equal hashes", [])
    assert heard == ["progress", "equal hashes"]
