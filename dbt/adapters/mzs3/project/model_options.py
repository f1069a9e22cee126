"""The options of exports and shards, in configs that have keys of other tools too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dbt.adapters.mzs3.export.options import KNOWN as OF_EXPORTS
from dbt.adapters.mzs3.shard.config import KNOWN as OF_SHARDS
from dbt.adapters.mzs3.text import is_near_miss

# dbt-athena's, and dbt-bigquery's: no near misses of `partition_by`.
_OF_OTHERS = ("partitioned_by", "partitions")


def export_options(node: Any, manifest: Any) -> dict[str, Any]:
    """The options in the config of a `copy_to_s3` model.

    Keys that are none are left out if a folder of dbt_project.yml has them, unless they are nearly
    spelled as one.
    """
    return _without_others(node.config.extra, OF_EXPORTS, _set_on_model(node, manifest))


def shard_options(node: Any, manifest: Any) -> dict[str, Any]:
    """As `export_options`, of a `persist_shard` model.

    Without dbt's defaults for those that are not given.
    """
    given = _without_others(node.config.extra, OF_SHARDS, _set_on_model(node, manifest))
    if "on_schema_change" in node.unrendered_config:
        given["on_schema_change"] = node.config.on_schema_change
    if node.config.column_types:
        given["column_types"] = node.config.column_types
    return given


def _without_others(
    given: dict[str, Any], known: Iterable[str], of_model: set[str]
) -> dict[str, Any]:
    """Without keys of folders that mean nothing here, as those of other adapters and tools."""
    return {
        key: value
        for key, value in given.items()
        if key in known
        or key in of_model
        or (key not in _OF_OTHERS and any(is_near_miss(key, own) for own in known))
    }


def _set_on_model(node: Any, manifest: Any) -> set[str]:
    """The keys of the model's own call of `config`, and of its `config` in a properties file.

    dbt hands on the call; of the file, it only keeps what stood there.
    """
    keys = set(node.config_call_dict)
    file = manifest.files.get(node.patch_path)
    if file is not None:
        for version in (None, node.version):
            keys |= set(file.get_unrendered_config("models", node.name, version) or ())
    return keys
