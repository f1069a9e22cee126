"""Numbers, states and order of a ledger's epochs, from their recorded phases; without Spark."""

from __future__ import annotations

import time
from collections.abc import Mapping

from dbt.adapters.mzs3.ledger.events import Phase

Epochs = Mapping[str, set[str]]
"""The recorded phases by epoch."""


def next_plan(epochs: Epochs) -> str:
    """A number for a new epoch with a plan: later than all recorded, and even; others are odd.

    A plan may be written late, after its run has lost the lock. A note with the same number would
    then be void together with that plan.
    """
    return _next(epochs, 0)


def next_epoch(epochs: Epochs) -> str:
    """A number for a new epoch without a plan: later than all recorded ones, and odd.

    It is the time in milliseconds: what a dead run's server still writes, under that run's number,
    can't collide with what this run writes.
    """
    return _next(epochs, 1)


def _next(epochs: Epochs, parity: int) -> str:
    least = max((int(epoch) + 1 for epoch in epochs), default=1)
    least = max(least, time.time_ns() // 1_000_000)
    return str(least + (least + parity) % 2)


def latest(phase: str, epochs: Epochs) -> str | None:
    """The latest epoch with this phase on record; None if there is none."""
    return max((epoch for epoch, on in epochs.items() if phase in on), key=int, default=None)


def current_epochs(epochs: Epochs) -> list[str]:
    """The latest snapshot's epoch and all later ones, in order: all that readers need."""
    start = int(latest(Phase.SNAPSHOT, epochs) or 0)
    return sorted((epoch for epoch in epochs if int(epoch) >= start), key=int)


def unfinished_epochs(epochs: Epochs) -> list[str]:
    """The current epochs with a plan that have neither ended nor been declared void, in order."""

    def is_unfinished(phases: set[str]) -> bool:
        # Closing an epoch adds an empty commit, and the epoch's own run may still write `failed`:
        # until the epoch is void, neither of these means that it has ended.
        own = set() if Phase.CLOSING in phases else {Phase.COMMIT, Phase.FAILED}
        return Phase.PLAN in phases and phases.isdisjoint({*own, Phase.VOID})

    return [epoch for epoch in current_epochs(epochs) if is_unfinished(epochs[epoch])]


def epochs_due(epochs: Epochs) -> list[str]:
    """The committed epochs whose objects wait to be tagged, moved or deleted; oldest first."""
    due = (
        epoch
        for epoch, on in epochs.items()
        if {Phase.DUE, Phase.COMMIT} <= on and not on & {Phase.VOID, Phase.DONE}
    )
    return sorted(due, key=int)
