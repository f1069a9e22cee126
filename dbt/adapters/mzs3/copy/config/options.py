"""The options of a `copy_to_s3` model, valid by construction."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from dbt.adapters.mzs3.copy.config.size import format_size, parse_size
from dbt.adapters.mzs3.copy.config.values import (
    ConfigReader,
    choice,
    flag,
    names,
    text,
    whole_number,
)
from dbt.adapters.mzs3.copy.executor.upload import MAX_UPLOAD_PARTS
from dbt.adapters.mzs3.csv_dialect import CsvDialect
from dbt.adapters.mzs3.errors import ConfigError

MIN_PART_SIZE = 5 << 20
MAX_PARTS = 10_000


@dataclass(frozen=True)
class CopyOptions:
    """What a model's config asks for, checked; sizes in bytes.

    `location` is a literal `s3://…` or a SQL expression; `parts` is None for the cluster's
    default parallelism; `force_quote` holds column names, or `*` for all.
    """

    location: str
    aws_connection: str = "default"
    max_file_size: int = 256 << 20
    part_size: int = 8 << 20
    max_multi_part_bytes_in_memory: int = 100 << 20
    parts: int | None = None
    header: bool = False
    dialect: CsvDialect = field(default_factory=CsvDialect)
    force_quote: tuple[str, ...] = ()

    def as_config(self) -> dict[str, Any]:
        """The options as a model's config would spell them, defaults included."""
        dialect = asdict(self.dialect)
        sizes = {
            name: format_size(getattr(self, name))
            for name in ("max_file_size", "part_size", "max_multi_part_bytes_in_memory")
        }
        return {
            "location": self.location,
            "aws_connection": self.aws_connection,
            "format": "csv",
            **sizes,
            "parts": self.parts,
            "header": self.header,
            **dialect,
            "force_quote": list(self.force_quote),
            "on_existing": "fail",
        }


_FROM_DESIGN_BUT_LATER = {
    "partition_by",
    "single_file",
    "encryption",
    "kms_key_id",
    "storage_class",
    "acl",
}
_KNOWN = (
    "location",
    "aws_connection",
    "format",
    "max_file_size",
    "part_size",
    "max_multi_part_bytes_in_memory",
    "parts",
    "header",
    "delimiter",
    "quote",
    "escape",
    "null",
    "force_quote",
    "compression",
    "on_existing",
)
# Configs of Spark models that projects set for whole folders; they mean nothing to an export.
_IGNORED = frozenset(
    {
        "file_format",
        "location_root",
        "clustered_by",
        "buckets",
        "options",
        "tblproperties",
        "merge_update_columns",
        "sql_header",
    }
)


def parse_options(
    node: str, config: Mapping[str, Any], connections: Collection[str]
) -> CopyOptions:
    """The options in a model's config; keys that other parts of dbt read are not in `config`.

    Raises ConfigError with every unknown, unsupported and wrong option at once.
    """
    given = {key: value for key, value in config.items() if key not in _IGNORED}
    problems = _key_problems(given)
    read = ConfigReader(given, problems)
    options: dict[str, Any] = {
        "location": read("location", text),
        "aws_connection": read("aws_connection", text),
        "max_file_size": read("max_file_size", parse_size),
        "part_size": read("part_size", parse_size),
        "max_multi_part_bytes_in_memory": read("max_multi_part_bytes_in_memory", parse_size),
        "parts": read("parts", whole_number(1, MAX_PARTS)),
        "header": read("header", flag),
        "force_quote": read("force_quote", names),
        "dialect": _dialect(read),
    }
    read("format", choice(supported=("csv",), later=("parquet",)))
    read("compression", choice(supported=("none",), later=("gzip", "zstd")))
    read("on_existing", choice(supported=("fail",), later=("overwrite", "resume")))
    if "location" not in given:
        problems.append("location is required: 's3://bucket/prefix' or a SQL expression for one")
    given_options = {key: value for key, value in options.items() if value is not None}
    parsed = CopyOptions(**{"location": "", **given_options})
    problems += _contradictions(parsed, connections)
    if problems:
        raise ConfigError(node, problems)
    return parsed


def _key_problems(given: Mapping[str, Any]) -> list[str]:
    problems = []
    for key in given:
        if key in _FROM_DESIGN_BUT_LATER:
            problems.append(f"{key} is not supported by this version")
        elif key not in _KNOWN:
            close = difflib.get_close_matches(key, _KNOWN, n=1)
            hint = f"; did you mean {close[0]}?" if close else f"; known are {', '.join(_KNOWN)}"
            problems.append(f"{key} is not an option of copy_to_s3{hint}")
    return problems


def _contradictions(options: CopyOptions, connections: Collection[str]) -> list[str]:
    problems = options.dialect.problems()
    if options.aws_connection not in connections:
        problems.append(
            f"aws_connection {options.aws_connection!r} is not in the profile; "
            f"it has {', '.join(sorted(connections))}"
        )
    if options.part_size < MIN_PART_SIZE:
        problems.append(f"part_size must be at least 5MB, not {format_size(options.part_size)}")
    elif options.max_file_size > options.part_size * MAX_UPLOAD_PARTS:
        problems.append(
            f"max_file_size {format_size(options.max_file_size)} needs more than "
            f"{MAX_UPLOAD_PARTS} upload parts of {format_size(options.part_size)}; raise part_size"
        )
    if options.max_multi_part_bytes_in_memory < 2 * options.part_size:
        problems.append("max_multi_part_bytes_in_memory must be at least twice part_size")
    return problems


def _dialect(read: ConfigReader) -> CsvDialect:
    given = {key: read(key, text) for key in ("delimiter", "quote", "escape", "null")}
    known = {key: value for key, value in given.items() if value is not None}
    if "quote" in known:
        known.setdefault("escape", known["quote"])  # as in PostgreSQL: the same as QUOTE
    return CsvDialect(**known)
