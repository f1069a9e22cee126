"""Warnings are dbt's to silence or to make errors; as errors they cut off nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from dbt_common.events.event_manager_client import get_event_manager
from dbt_common.helper_types import WarnErrorOptionsV2

from dbt.adapters.mzs3.dbt_log import Warnings, warnings_of
from dbt.adapters.mzs3.errors import Mzs3Error, SourceError
from dbt.adapters.mzs3.events import CopyEvent, copy_warning

NAMES = {"AdapterEventWarning"}
OF_EXPORT = copy_warning("analytics.orders", "model.acme.orders", "s3://a/b/", "no history")
PROGRESS = CopyEvent("mzs3.copy.progress", "1 of 2 parts", OF_EXPORT.fields)


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """dbt's events as 1.12 has them; `logged` are those that reach a log."""
    manager = get_event_manager()
    monkeypatch.setattr(manager, "require_warn_or_error_handling", True)
    monkeypatch.setattr(manager, "_warn_error", None)
    monkeypatch.setattr(manager, "_warn_error_options", None)
    monkeypatch.setattr(manager, "loggers", [])
    monkeypatch.setattr(manager, "callbacks", [])
    manager.logged = []
    manager.add_callback(lambda event: manager.logged.append((event.info.level, event.info.msg)))
    yield manager
    del manager.logged


def said() -> Warnings:
    warnings = Warnings()
    warnings.warn("look into this")
    warnings.tell(OF_EXPORT)
    warnings.tell(PROGRESS)
    return warnings


def test_warnings_are_logged(manager: Any) -> None:
    assert said().errors == []
    assert manager.logged == [
        ("warn", "mzs3 adapter: look into this"),
        ("warn", "analytics.orders: no history"),
        ("info", "analytics.orders: 1 of 2 parts"),
    ]


@pytest.mark.parametrize("by", ["--warn-error", "its name", "all"])
def test_those_that_are_errors_are_kept_for_the_end(manager: Any, by: str) -> None:
    if by == "--warn-error":
        manager.warn_error = True
    else:
        error = [*NAMES] if by == "its name" else "all"
        manager.warn_error_options = WarnErrorOptionsV2(error, valid_error_names={*NAMES})
    assert said().errors == ["look into this", "analytics.orders: no history"]
    assert manager.logged == [("info", "analytics.orders: 1 of 2 parts")]


def test_those_that_are_silenced_are_not_logged(manager: Any) -> None:
    silent = WarnErrorOptionsV2(silence=[*NAMES], valid_error_names={*NAMES})
    manager.warn_error_options = silent
    assert said().errors == []
    assert manager.logged == [("info", "analytics.orders: 1 of 2 parts")]


def test_they_fail_a_block_once_it_has_ended(manager: Any) -> None:
    manager.warn_error = True
    ended = False
    with (
        pytest.raises(Mzs3Error) as caught,
        warnings_of("lake.orders") as warnings,
    ):
        warnings.warn("lake.orders: look into this")
        ended = True
    assert ended
    assert str(caught.value).splitlines() == [
        "lake.orders: look into this",
        "lake.orders: a warning is an error here, by --warn-error or warn_error_options; "
        "what was done stays",
    ]


def test_a_block_that_fails_by_itself_fails_so_and_they_are_logged(manager: Any) -> None:
    manager.warn_error = True
    with pytest.raises(SourceError, match="no such bucket"), warnings_of("lake") as warnings:
        warnings.warn("look into this")
        raise SourceError("no such bucket")
    assert manager.logged == [("error", "mzs3 adapter: look into this")]
