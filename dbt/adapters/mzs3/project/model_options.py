"""The options of exports and shards, in configs that have keys of other tools too."""

from __future__ import annotations

import re
from typing import Any

from dbt.adapters.mzs3.export.options import CopyOptions
from dbt.adapters.mzs3.options.option import options_of
from dbt.adapters.mzs3.shard.options import ShardOptions

# dbt-athena's and dbt-starrocks', which are nearly spelled as ours.
_OF_OTHERS = ("partitioned_by", "mv_on_schema_change")


def export_options(node: Any, manifest: Any) -> dict[str, Any]:
    """The options in the config of a `copy_to_s3` model.

    Keys that are none are left out if a folder of dbt_project.yml has them, unless they are nearly
    spelled as one.
    """
    return _without_others(node.config.extra, CopyOptions, _set_on_model(node, manifest))


def shard_options(node: Any, manifest: Any) -> dict[str, Any]:
    """As `export_options`, of a `persist_shard` model.

    Without dbt's defaults for those that are not given.
    """
    given = _without_others(node.config.extra, ShardOptions, _set_on_model(node, manifest))
    if "on_schema_change" in node.unrendered_config:
        given["on_schema_change"] = node.config.on_schema_change
    if node.config.column_types:
        given["column_types"] = node.config.column_types
    return given


def _without_others(given: dict[str, Any], options: type, of_model: set[str]) -> dict[str, Any]:
    """Without keys of folders that mean nothing here, as those of other adapters and tools."""
    known = options_of(options)
    return {
        key: value
        for key, value in given.items()
        if key in known
        or key in of_model
        or (key not in _OF_OTHERS and any(_is_slip(key, own) for own in known))
    }


def _set_on_model(node: Any, manifest: Any) -> set[str]:
    """The keys of the model's own call of `config`, and of its `config` in a properties file.

    dbt hands on the call; of the file, it only keeps what stands there. A manifest that was read
    from an artifact has no files: its project was checked when it was parsed.
    """
    keys = set(node.config_call_dict)
    file = manifest.files.get(node.patch_path)
    models = file.dict_from_yaml.get("models", ()) if file is not None else ()
    for model in models:
        if model.get("name") == node.name:
            versions = [one for one in model.get("versions") or () if one.get("v") == node.version]
            for each in (model, *versions):
                keys |= {*(each.get("config") or ())}
    return keys


def _is_slip(given: str, meant: str) -> bool:
    """Whether a key is nearly spelled as another: two letters are swapped, one is missing or too
    many, or two of a long key are."""
    one, other = (re.sub("[-_]", "", each).lower() for each in (given, meant))
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    is_swap = len(one) == 2 and one == other[::-1]
    return given != meant and (is_swap or len(one + other) <= (2 if len(meant) > 8 else 1))
