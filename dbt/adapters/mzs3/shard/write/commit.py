"""What becomes of a batch's files when it is not known whether the batch is part of the shard."""

from __future__ import annotations

from collections.abc import Sequence

from dbt.adapters.mzs3.copy.commit.each import each
from dbt.adapters.mzs3.copy.commit.place import Place
from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.shard.state.batch import BatchFile
from dbt.adapters.mzs3.shard.state.store import StateStore


def remove_uncommitted(place: Place, store: StateStore, files: Sequence[BatchFile]) -> bool:
    """Whether the batch of these files is or was part of the shard; if not, they are removed.

    A write whose answer is lost may have come through, and others may have changed the state
    since. Where that can't be told, the files stay, and the answer is no.
    """
    try:
        found = store.read()
    except Mzs3Error:
        return False
    if found is None or not files:
        return False
    names = {file.name for file in files}
    retired = {file.name for file in found.state.retired}
    if names <= found.state.file_names or names <= retired:
        return True
    each(files, lambda file: place.delete(place.key(file.name)))
    return False
