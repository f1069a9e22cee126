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
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any

from dbt.adapters.mzs3.credentials import Mzs3Credentials
from dbt.adapters.mzs3.export.options import CopyOptions
from dbt.adapters.mzs3.formats.write import FORMATS
from dbt.adapters.mzs3.options.option import Option, options_of
from dbt.adapters.mzs3.shard.options import ShardOptions, ShardSource
from dbt.adapters.mzs3.source import options as source_options
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.submit.options import SubmitOptions

DOCS = Path(__file__).resolve().parent.parent / "docs"
TABLES: dict[str, type] = {
    "the profile": Mzs3Credentials,
    "aws_connections": AwsConnection,
    "spark_submit": SubmitOptions,
    "copy_to_s3": CopyOptions,
    "persist_shard": ShardOptions,
    "s3_csv_source": source_options.SourceDefinition,
    "a persist_shard source": ShardSource,
}
_FORMATS = [*FORMATS.values()]
# What no field of a class says, as it depends on which formats there are.
_OF_FORMATS = {
    "format": (f"`{_FORMATS[0].name}`", "What the files are"),
    "compression": (
        ", ".join(f"`{next(iter(each.file_types))}` ({each.name})" for each in _FORMATS),
        ". ".join(f"{each.title}: `{'`, `'.join(each.file_types)}`" for each in _FORMATS),
    ),
}
_TABLE = re.compile(
    r"(<!-- options of ([^:\n]+?)(?:: ([\w ]+))? -->\n).*?(<!-- end -->)", re.DOTALL
)
_LINK_TO_PAGE = re.compile(r"\]\((?=[^)#]*\.md)")


def rows(name: str) -> Iterator[tuple[str, str, str]]:
    """The key, the default and the meaning of each option that has a text below its field."""
    known = _OF_FORMATS if name == "copy_to_s3" else {}
    for key, one in _declared(TABLES[name]).items():
        text = _texts_below(one.owner).get(one.field)
        if row := known.get(key, (_default(one), text) if text else None):
            default, meaning = row
            if one.title and text:
                meaning = f"{one.title}: {meaning[0].lower()}{meaning[1:]}"
            yield key, default, meaning


def _declared(kind: Any) -> Mapping[str, Option]:
    """The options of a class; of dbt's dataclass of profiles, its fields."""
    plain = {
        each.name: Option(str, each.default, key=each.name, field=each.name, owner=kind)
        if each.default_factory is MISSING
        else Option(str, {}, key=each.name, field=each.name, owner=kind)
        for each in fields(kind)
    }
    return options_of(kind) or plain


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


def _texts_below(options: type) -> dict[str, str]:
    """The text below each field of a class, and of what it inherits from."""
    base = options.__base__
    found = _texts_below(base) if base and is_dataclass(base) else {}
    [body] = ast.parse(textwrap.dedent(inspect.getsource(options))).body
    assert isinstance(body, ast.ClassDef)
    for field, below in pairwise(body.body):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
            text = ast.literal_eval(below.value)
            found[ast.unparse(field.target)] = " ".join(text.split()).removesuffix(".")
    return found


def _default(one: Option) -> str:
    if one.shown:
        return one.shown
    if one.default is MISSING or one.key == "method":
        return "required"
    if one.default in (None, (), {}):
        return "none"
    return f"`{_shown(one)}`" if one.default != "" else "empty"


def _shown(one: Option) -> str:
    value = one.default
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    spelled = one.spell(value.value if isinstance(value, Enum) else value)
    return str(spelled) if spelled is value or isinstance(value, Enum) else f"'{spelled}'"


if __name__ == "__main__":
    for path in DOCS.rglob("*.md"):
        path.write_text(updated(path))
