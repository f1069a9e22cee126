"""Writes the tables of options in the docs, from the dataclasses that the options are read into.

A table is between `<!-- options of NAME -->` and `<!-- end -->`. Behind the name may be keys, for
a page that is about some of them: `<!-- options of NAME: KEY KEY -->`. `make docs` runs this.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any

from dbt.adapters.mzs3.credentials import Mzs3Credentials
from dbt.adapters.mzs3.export.options import KNOWN, CopyOptions
from dbt.adapters.mzs3.formats.write.registry import FORMATS
from dbt.adapters.mzs3.options.values import format_size, option_fields
from dbt.adapters.mzs3.shard import config as shard_config
from dbt.adapters.mzs3.source import definition as source_definition
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.submit.options import SubmitOptions

DOCS = Path(__file__).resolve().parent.parent / "docs"
TABLES: dict[str, type | tuple[type, ...]] = {
    "the profile": Mzs3Credentials,
    "aws_connections": AwsConnection,
    "spark_submit": SubmitOptions,
    "copy_to_s3": (CopyOptions, *FORMATS.values()),
    "persist_shard": shard_config.ShardOptions,
    "s3_csv_source": source_definition.External,
    "a persist_shard source": shard_config.External,
}
_FORMATS = [*FORMATS.values()]
# What no field of a class says, as it depends on which formats there are.
_OF_FORMATS = {
    "format": (f"`{_FORMATS[0].name}`", "What the files are"),
    "compression": (
        ", ".join(f"`{next(iter(each.stored_as))}` ({each.name})" for each in _FORMATS),
        ". ".join(f"{each.title}: `{'`, `'.join(each.stored_as)}`" for each in _FORMATS),
    ),
}
_TABLE = re.compile(
    r"(<!-- options of ([^:\n]+?)(?:: ([\w ]+))? -->\n).*?(<!-- end -->)", re.DOTALL
)
_LINK_TO_PAGE = re.compile(r"\]\((?=[^)#]*\.md)")
_LEAST_SIZE = 1 << 20
"""Greater numbers are sizes in bytes."""


def rows(name: str) -> Iterator[tuple[str, str, str]]:
    """The key, the default and the meaning of each option that has a text below its field."""
    found = dict(_OF_FORMATS) if name == "copy_to_s3" else {}
    for options in table if isinstance(table := TABLES[name], tuple) else (table,):
        meanings = _texts_below(options)
        for option in option_fields(options):
            if option.name in meanings:
                found[option.name] = _default(option), meanings[option.name]
    for key in sorted(found, key=KNOWN.index) if name == "copy_to_s3" else found:
        yield key, *found[key]


def updated(page: Path) -> str:
    """The page's text with its tables as they should be."""
    to_docs = os.path.relpath(DOCS, page.parent) + "/"

    def table(found: re.Match[str]) -> str:
        begin, name, keys, end = found.groups()
        lines = ["| option | default | meaning |", "| --- | --- | --- |"]
        for key, default, meaning in rows(name):
            if keys is None or key in keys.split():
                linked = _LINK_TO_PAGE.sub(f"]({to_docs.removeprefix('./')}", meaning)
                lines.append(f"| `{key}` | {default} | {linked} |")
        return "\n".join([begin, *lines, "", end])

    return _TABLE.sub(table, page.read_text())


def _texts_below(options: Any) -> dict[str, str]:
    """The text below each field of a class, and of those that are nested in it."""
    found = {}
    [body] = ast.parse(textwrap.dedent(inspect.getsource(options))).body
    assert isinstance(body, ast.ClassDef)
    for field, below in pairwise(body.body):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
            text = ast.literal_eval(below.value)
            found[ast.unparse(field.target)] = " ".join(text.split()).removesuffix(".")
    for nested in (field.default_factory for field in fields(options)):
        found |= _texts_below(nested) if is_dataclass(nested) else {}
    return found


def _default(option: Field[Any]) -> str:
    value = () if option.default_factory is not MISSING else option.default
    optional = any(word in str(option.type) for word in ("None", "Optional"))
    if value is MISSING or (value is None and not optional):
        return "required"
    if value is None or value == ():
        return "none"
    return f"`{_shown(value)}`" if value != "" else "empty"


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value >= _LEAST_SIZE:
        return f"'{format_size(value)}'"
    return str(value.value if isinstance(value, Enum) else value)


if __name__ == "__main__":
    for path in DOCS.rglob("*.md"):
        path.write_text(updated(path))
