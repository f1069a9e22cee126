"""State that a Python worker process of Spark keeps for us from one task to the next."""

from __future__ import annotations

import gc
import io
import pickle
import sys
import time
from types import ModuleType
from typing import Any

_MODULE = "_dbt_mzs3_worker_state"
# A worker keeps the code of at most this many kinds of tasks, each of about 1 MB.
_KEPT_CODE = 16
_FULL_COLLECTION_S = 60.0


def worker_state() -> dict[str, Any]:
    """A dict that lives as long as this Python process.

    Executor code is pickled by value, so its modules have new globals in each task. The dict is
    therefore an attribute of an extra module in `sys.modules`, where each copy of the code finds
    the same dict. Its keys are:

    - `stores`: the stores that were opened in the last minute (`store/opened.py`)
    - `loader`: botocore's descriptions of services (`store/client.py`)
    - `code`: the functions and classes of each kind of task, by their pickle
    - `collected`, `frozen`: the time of the last full garbage collection, and whether the objects
      that survived it are frozen
    """
    module: Any = sys.modules.setdefault(_MODULE, ModuleType(_MODULE))
    state: dict[str, Any] = module.__dict__.setdefault("state", {})
    return state


def load(code: bytes, data: bytes) -> Any:
    """Unpickles `data`, with our functions and classes from `code`.

    `code` is a pickled dict of them, by module and name, and is unpickled once in a process.
    """
    kept = worker_state().setdefault("code", {})
    ours = kept[code] = kept.pop(code, None) or pickle.loads(code)  # noqa: S301 - our own
    while len(kept) > _KEPT_CODE:
        del kept[next(iter(kept))]  # the least recently used

    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            shipped = ours.get((module, name))
            return super().find_class(module, name) if shipped is None else shipped

    return Unpickler(io.BytesIO(data)).load()


def freeze_survivors() -> None:
    """Lets PySpark's garbage collection after each task examine all objects only once a minute; in
    between, objects that survived are frozen, and skipped.

    With boto3 loaded, a full collection takes 0.17 s.
    """
    state, now = worker_state(), time.monotonic()
    if now - state.get("collected", -_FULL_COLLECTION_S) >= _FULL_COLLECTION_S:
        gc.unfreeze()
        state.update(collected=now, frozen=False)
    elif not state["frozen"]:
        gc.freeze()
        state.update(frozen=True)
