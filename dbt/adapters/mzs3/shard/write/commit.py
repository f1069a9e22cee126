"""What becomes of a batch's files when it is not known whether the batch is part of the shard."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from dbt.adapters.mzs3.aws.failures import AwsFailure
from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.objects.concurrently import each
from dbt.adapters.mzs3.objects.prefix import Place
from dbt.adapters.mzs3.shard.state.batch import BatchFile
from dbt.adapters.mzs3.shard.state.store import StateStore, UnknownWriteError


@contextmanager
def committing(place: Place, store: StateStore, files: Sequence[BatchFile]) -> Iterator[None]:
    """Put around the write that makes these files part of the shard: ends well if they are.

    What the block raises is passed on if they are not, or that can't be told. They are then gone,
    but after an UnknownWriteError: what is on its way may name them yet.
    """
    try:
        yield
    except UnknownWriteError:
        if not _has(store, files):
            raise
    except Mzs3Error:
        if not remove_uncommitted(place, store, files):
            raise


def remove_uncommitted(place: Place, store: StateStore, files: Sequence[BatchFile]) -> bool:
    """Whether the batch of these files is or was part of the shard; if not, they are removed.

    To be called when a write was refused. One whose answer is lost may have come through, and
    others may have changed the state since. Where that can't be told, the files stay, and the
    answer is no. Raises nothing, as another error is on its way: what can't be removed stays,
    for `compact_shard` to remove.
    """
    found = _has(store, files)
    if found is False:
        remove(place, [place.key(file.name) for file in files])
    return bool(found)


def remove(place: Place, keys: Iterable[str]) -> list[str]:
    """Remove objects as far as S3 lets us; those that may still be there."""

    def one(key: str) -> str | None:
        with contextlib.suppress(*AwsFailure):
            place.delete(key)
            return None
        return key

    return [key for key in each(keys, one) if key is not None]


def _has(store: StateStore, files: Sequence[BatchFile]) -> bool | None:
    """None where it can't be told."""
    if not files:
        return None
    try:
        found = store.read()
    except Mzs3Error:
        return None
    if found is None:
        return False
    names = {file.name for file in files}
    retired = {file.name for file in found.state.retired}
    return names <= found.state.file_names or names <= retired
