"""The options of a `copy_to_s3` model, valid by construction."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from dbt.adapters.mzs3.config.size import format_size, parse_size
from dbt.adapters.mzs3.config.values import (
    IGNORED,
    ConfigReader,
    choice,
    file_name,
    flag,
    names,
    names_or_all,
    text,
    whole_number,
)
from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.export.contradictions import contradictions
from dbt.adapters.mzs3.export.keys import key_problems
from dbt.adapters.mzs3.export.object_properties import (
    ACLS,
    ENCRYPTIONS,
    STORAGE_CLASSES,
    ObjectProperties,
    tag_mapping,
)
from dbt.adapters.mzs3.formats.csv.dialect import CsvDialect
from dbt.adapters.mzs3.rows.plan import MAX_PARTS

COMPRESSIONS: Mapping[str, tuple[str, ...]] = {
    "csv": ("none", "gzip", "zstd"),
    "parquet": ("snappy", "none", "gzip", "zstd", "lz4"),
}
_SIZES = ("max_file_size", "part_size", "max_multi_part_bytes_in_memory")


@dataclass(frozen=True)
class CopyOptions:
    """What a model's config asks for, checked; sizes in bytes.

    `location` is a literal `s3://…` or a SQL expression; `parts` is None for the cluster's
    default parallelism; `force_quote` holds column names, or `*` for all; `compression` is one of
    the format's.
    """

    location: str
    aws_connection: str = "default"
    format: Literal["csv", "parquet"] = "csv"
    compression: Any = "none"
    max_file_size: int = 256 << 20
    part_size: int = 8 << 20
    max_multi_part_bytes_in_memory: int = 100 << 20
    parts: int | None = None
    partition_by: tuple[str, ...] = ()
    single_file: str | None = None
    on_existing: Literal["fail", "overwrite", "resume"] = "fail"
    header: bool = False
    dialect: CsvDialect = field(default_factory=CsvDialect)
    force_quote: tuple[str, ...] = ()
    properties: ObjectProperties = field(default_factory=ObjectProperties)

    def as_config(self) -> dict[str, Any]:
        """The options as a model's config would spell them, those that shape files included."""
        shared = {
            "location": self.location,
            "aws_connection": self.aws_connection,
            "format": self.format,
            "compression": self.compression,
            **{name: format_size(getattr(self, name)) for name in _SIZES},
            "on_existing": self.on_existing,
        }
        if self.single_file is not None:
            del shared["max_file_size"]
            shared["single_file"] = self.single_file
        else:
            shared |= {"parts": self.parts, "partition_by": list(self.partition_by)}
        if self.format == "parquet":
            return shared
        csv = {
            "header": self.header,
            **asdict(self.dialect),
            "force_quote": list(self.force_quote),
        }
        return {**shared, **csv}


def parse_options(
    node: str, config: Mapping[str, Any], connections: Collection[str]
) -> CopyOptions:
    """The options in a model's config; keys that other parts of dbt read are not in `config`.

    Raises ConfigError with every unknown, unsupported and wrong option at once.
    """
    given = {key: value for key, value in config.items() if key not in IGNORED}
    problems = key_problems(given)
    read = ConfigReader(given, problems)
    kind = read("format", choice(tuple(COMPRESSIONS))) or "csv"
    options: dict[str, Any] = {
        "location": read("location", text),
        "aws_connection": read("aws_connection", text),
        "format": kind,
        "compression": read("compression", choice(COMPRESSIONS[kind])) or COMPRESSIONS[kind][0],
        **{size: read(size, parse_size) for size in _SIZES},
        "parts": read("parts", whole_number(1, MAX_PARTS)),
        "partition_by": read("partition_by", names),
        "single_file": read("single_file", file_name),
        "on_existing": read("on_existing", choice(("fail", "overwrite", "resume"))),
        "header": read("header", flag),
        "force_quote": read("force_quote", names_or_all),
        "dialect": _dialect(read),
        "properties": _properties(read),
    }
    known = {key: value for key, value in options.items() if value is not None}
    parsed = CopyOptions(**{"location": "", **known})
    problems += contradictions(parsed, given, connections)
    if problems:
        raise ConfigError(node, problems)
    return parsed


def _dialect(read: ConfigReader) -> CsvDialect:
    given = {key: read(key, text) for key in ("delimiter", "quote", "escape", "null")}
    known = {key: value for key, value in given.items() if value is not None}
    if "quote" in known:
        known.setdefault("escape", known["quote"])  # as in PostgreSQL: the same as QUOTE
    return CsvDialect(**known)


def _properties(read: ConfigReader) -> ObjectProperties:
    return ObjectProperties(
        encryption=read("encryption", choice(ENCRYPTIONS)),
        kms_key_id=read("kms_key_id", text),
        storage_class=read("storage_class", choice(STORAGE_CLASSES)),
        object_tags=read("object_tags", tag_mapping) or {},
        acl=read("acl", choice(ACLS)),
    )
