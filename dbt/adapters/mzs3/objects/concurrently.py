"""Doing one thing to many objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")
_THREADS = 16


def each(items: Iterable[Item], work: Callable[[Item], Answer]) -> list[Answer]:
    """The work's answers, done in parallel; waits for all, then raises the first failure."""
    with ThreadPoolExecutor(_THREADS) as pool:
        outcomes = [pool.submit(work, item) for item in items]
    return [outcome.result() for outcome in outcomes]
