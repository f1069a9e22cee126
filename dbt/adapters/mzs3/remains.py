"""What a run that the user interrupts says at its end."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dbt_common.exceptions import DbtRuntimeError

INTERRUPTED = "interrupted by the user"


class Remains:
    """What is left of the jobs of an interrupted run; from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[str] = []
        self._said: list[str] = []

    @contextmanager
    def running(self, job: str) -> Iterator[None]:
        """Put around a job, to know whether it had the time to end."""
        with self._lock:
            self._running.append(job)
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(job)

    def say(self, text: str) -> None:
        """What a job that was cancelled has left, which dbt itself would not show."""
        with self._lock:
            if text not in self._said:
                self._said.append(text)

    def raise_if_interrupted(self) -> None:
        """To call where dbt tidies up: raises all that was said, in the place of an interrupt.

        Of an interrupt dbt shows the stack trace, of this the text.
        """
        with self._lock:
            cut_off = [f"{job} was cut off before it had ended" for job in self._running]
            said, self._said = [*self._said, *cut_off], []
        interrupt = sys.exc_info()[1]
        if isinstance(interrupt, KeyboardInterrupt):
            raise DbtRuntimeError("\n".join([INTERRUPTED, *said])) from interrupt
