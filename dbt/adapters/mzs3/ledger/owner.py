"""The process that holds the lock of a source, and whether it still runs."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MACHINE_ID = Path("/etc/machine-id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")
# The namespace of a Linux host itself has always this number; those of containers never do.
_OF_THE_HOST = "pid:[4026531836]"
_ENDED = frozenset("ZXx")  # zombie, dead


@dataclass(frozen=True)
class Owner:
    """A process, told apart from every other one, later ones with the same number included.

    `place` is where `pid` means something: the host, the container and the user. `boot` is the
    host's boot, `started` when the process did, in the kernel's clock; empty where not known.
    """

    place: str
    boot: str
    pid: int
    started: str
    host: str

    def is_gone(self) -> bool:
        """True only if the process certainly runs no more; another place can't be judged."""
        if self.place != _place():
            return False
        if self.boot != _text(_BOOT_ID):
            # Nothing outlives a host's boot; but two containers on two hosts may look like one.
            return _namespace() == _OF_THE_HOST
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        state, started = _stat(self.pid)
        return state in _ENDED or bool(self.started and started and started != self.started)


def current_owner() -> Owner:
    """This process."""
    pid = os.getpid()
    return Owner(_place(), _text(_BOOT_ID), pid, _stat(pid)[1], socket.gethostname())


def _place() -> str:
    parts = [socket.gethostname(), str(os.getuid()) if hasattr(os, "getuid") else ""]
    # Hosts may share a name, and so may containers.
    return "/".join([*parts, _text(_MACHINE_ID), _namespace()])


def _namespace() -> str:
    return str(_PID_NAMESPACE.readlink()) if _PID_NAMESPACE.is_symlink() else ""


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _stat(pid: int) -> tuple[str, str]:
    """The state of a process, and when it started; both empty where that is not known."""
    # State and starttime of proc(5). The command's name before them is in parentheses, and may
    # hold spaces and parentheses.
    fields = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return (fields[0], fields[19]) if len(fields) > 19 else ("", "")
