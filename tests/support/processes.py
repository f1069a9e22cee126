"""Processes that tests start and kill, and what is left of them; waiting for other states."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Callable, Iterable
from pathlib import Path


def session_members(session: int) -> list[int]:
    """The ids of all processes of a session that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, sid = stat.read_text().rsplit(")", 1)[1].split()[:4]
        except OSError:
            continue
        if int(sid) == session and state not in "ZX":
            found.append(int(stat.parent.name))
    return found


def wait_until(happened: Callable[[], bool], seconds: float = 60) -> None:
    """Asks again and again, for what gives no event, such as Spark's tasks; fails in the end."""
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.05)


def wait_for_end(processes: Iterable[int], seconds: float) -> None:
    """Return once these have ended, by themselves or killed; fails where one goes on."""
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            process = os.pidfd_open(pid)
            gone, _, _ = select.select([process], [], [], seconds)
            os.close(process)
            assert gone, f"still alive: {pid}"
