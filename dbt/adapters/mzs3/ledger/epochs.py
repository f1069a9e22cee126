"""Numbers, order and states of a ledger's epochs, derived from their phases, without Spark."""

from __future__ import annotations

import time
from collections.abc import Mapping

from dbt.adapters.mzs3.ledger.events import Phase

Epochs = Mapping[str, set[str]]
"""The recorded phases by epoch."""


def next_plan(epochs: Epochs) -> str:
    """A number for a new epoch with a plan: larger than all recorded numbers, and even.

    Epochs without a plan have odd numbers. Otherwise a run that has lost the lock could write its
    plan under the number of another run's note, which would become void together with the plan.
    """
    return _next(epochs, 0)


def next_epoch(epochs: Epochs) -> str:
    """A number for a new epoch without a plan: larger than all recorded numbers, and odd.

    It is the time in milliseconds, so that no run reuses the number of a dead run, under which a
    Spark server may still write.
    """
    return _next(epochs, 1)


def _next(epochs: Epochs, parity: int) -> str:
    least = max((int(epoch) + 1 for epoch in epochs), default=1)
    least = max(least, time.time_ns() // 1_000_000)
    return str(least + (least + parity) % 2)


def latest(phase: str, epochs: Epochs) -> str | None:
    """The latest epoch that has this phase; None if no epoch has it."""
    return max((epoch for epoch, on in epochs.items() if phase in on), key=int, default=None)


def current_epochs(epochs: Epochs) -> list[str]:
    """The latest snapshot's epoch and all later ones, in order: all that readers need."""
    start = int(latest(Phase.SNAPSHOT, epochs) or 0)
    return sorted((epoch for epoch in epochs if int(epoch) >= start), key=int)


def unfinished_epochs(epochs: Epochs) -> list[str]:
    """The current epochs with a plan that have neither ended nor been declared void, in order."""

    def is_unfinished(phases: set[str]) -> bool:
        # While an epoch is being closed, it has an empty commit, and its own run may still write
        # `failed`: neither of these means that the epoch has ended.
        ends = set() if Phase.CLOSING in phases else {Phase.COMMIT, Phase.FAILED}
        return Phase.PLAN in phases and phases.isdisjoint({*ends, Phase.VOID})

    return [epoch for epoch in current_epochs(epochs) if is_unfinished(epochs[epoch])]


def epochs_awaiting_after_commit(epochs: Epochs) -> list[str]:
    """The committed epochs whose objects wait to be tagged, moved or deleted; oldest first."""
    due = (
        epoch
        for epoch, phases in epochs.items()
        if {Phase.DUE, Phase.COMMIT} <= phases and not phases & {Phase.VOID, Phase.DONE}
    )
    return sorted(due, key=int)
