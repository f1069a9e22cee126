"""One attempt at each source in one invocation of dbt, however many nodes need it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field


@dataclass
class _Attempt:
    lock: threading.Lock = field(default_factory=threading.Lock)
    done: bool = False
    error: str | None = None


class Attempts:
    """Every attempt of the running invocation; those of earlier ones are forgotten."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._invocation = ""
        self._of: dict[Hashable, _Attempt] = {}

    def once(self, invocation: str, key: Hashable, action: Callable[[], str | None]) -> str | None:
        """What the first call of this invocation with this key got from its action: an error or
        None. Calls that come while it runs wait for it."""
        attempt = self._get(invocation, key)
        with attempt.lock:
            if not attempt.done:
                attempt.error = action()
                attempt.done = True
        return attempt.error

    def _get(self, invocation: str, key: Hashable) -> _Attempt:
        with self._guard:
            if invocation != self._invocation:
                self._invocation, self._of = invocation, {}
            return self._of.setdefault(key, _Attempt())
