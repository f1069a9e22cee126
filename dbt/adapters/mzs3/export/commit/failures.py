"""How a commit fails, and what each failure leaves behind."""

from __future__ import annotations

from collections.abc import Sequence

from dbt.adapters.mzs3.errors import CopyError
from dbt.adapters.mzs3.store.failures import PermissionDeniedError, StoreError, describe


class UnansweredError(Exception):
    """Whether the intent was changed is unknown: reading it, to find out, failed with `cause`."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause
        super().__init__(str(cause))


class CommitError(CopyError):
    """A commit failed; `leftovers` are lines about what the next run will finish or remove.

    `unproven` are the URIs of objects with names of its files that may be another writer's.
    """

    def __init__(
        self, reason: str, leftovers: Sequence[str] = (), unproven: Sequence[str] = ()
    ) -> None:
        self.leftovers = tuple(leftovers)
        self.unproven = tuple(unproven)
        super().__init__(reason)


class StaleFilesError(CopyError):
    """The export is committed, but some files of the one that it replaced could not be deleted."""


def is_denied(exc: Exception) -> bool:
    """Whether a permission is missing: to change the intent, or to read it after the change."""
    cause = exc.cause if isinstance(exc, UnansweredError) else exc
    return isinstance(cause, PermissionDeniedError)


def describe_failure(exc: BaseException, doing: str) -> str:
    """One line for users, with the missing permission if there is one."""
    cause = exc.cause if isinstance(exc, UnansweredError) else exc
    if isinstance(cause, StoreError):
        return describe(cause, doing, cause.permission)
    return f"{doing} failed: {exc}"
