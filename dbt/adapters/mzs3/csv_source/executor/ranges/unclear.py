"""What tasks say of an object that can't be read in ranges, for the driver to understand."""

from __future__ import annotations

from dbt.adapters.mzs3.errors import ExecutorError

_UNCLEAR = "dbt-mzs3: this object can't be read in ranges and is read again by one task: "


def unclear(key: str) -> ExecutorError:
    """The error of a task that can't read a range of the object."""
    return ExecutorError(f"{_UNCLEAR}{key}")


def unclear_object(message: str | None) -> str | None:
    """The object of which a task's error says so; None for any other error."""
    if message is None or not message.startswith(_UNCLEAR):
        return None
    return message.removeprefix(_UNCLEAR)
