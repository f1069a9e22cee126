"""Problems of a configuration from several places, told at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from dbt.adapters.mzs3.errors import ConfigError


class Problems:
    """What is wrong with the configuration of one model or operation, in the order it is found."""

    def __init__(self, subject: str, known: Iterable[str] = ()) -> None:
        self._subject = subject
        self.found = list(known)

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Put around what raises ConfigError: its problems are noted, and the rest goes on."""
        try:
            yield
        except ConfigError as exc:
            self.found += exc.problems

    def raise_if_any(self) -> None:
        """Raises ConfigError with all that was found."""
        if self.found:
            raise ConfigError(self._subject, self.found)
