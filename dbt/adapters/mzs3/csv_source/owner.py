"""Which process holds a lock, and whether that process is certainly gone."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")
_FIELDS_BEFORE_START = 19  # of /proc/<pid>/stat, counted from the field behind the command's name


@dataclass(frozen=True)
class Owner:
    """A process, told apart from every other one, later ones with the same number included.

    `place` is where `pid` means something: the host, since its last boot, the container and the
    user. `started` is when the process did, in the kernel's clock; empty where it is not known.
    """

    place: str
    pid: int
    started: str
    host: str

    def is_gone(self) -> bool:
        """True only if the process certainly runs no more; another place can't be judged."""
        if self.place != _place():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        started = _started(self.pid)
        return bool(self.started and started and started != self.started)


def current_owner() -> Owner:
    """This process."""
    pid = os.getpid()
    return Owner(_place(), pid, _started(pid), socket.gethostname())


def _place() -> str:
    parts = [socket.gethostname(), str(os.getuid()) if hasattr(os, "getuid") else ""]
    # Containers may share a host's name, and a restarted host its process numbers.
    if _BOOT_ID.exists():
        parts.append(_BOOT_ID.read_text().strip())
    if _PID_NAMESPACE.is_symlink():
        parts.append(str(_PID_NAMESPACE.readlink()))
    return "/".join(parts)


def _started(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    # The command's name is in parentheses, and may hold spaces and parentheses itself.
    return stat.rpartition(")")[2].split()[_FIELDS_BEFORE_START]
