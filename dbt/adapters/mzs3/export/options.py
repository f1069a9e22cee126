"""The options of a `copy_to_s3` model, valid by construction."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from dbt.adapters.mzs3.aws.connection import DEFAULT_NAME
from dbt.adapters.mzs3.aws.location import SCHEME, literal_problems, unknown_connection
from dbt.adapters.mzs3.config.values import (
    IGNORED,
    ConfigReader,
    choice,
    file_name,
    flag,
    format_size,
    names,
    names_or_all,
    option_fields,
    parse_size,
    text,
    unknown_keys,
    whole_number,
)
from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.export.object_properties import (
    ACLS,
    ENCRYPTIONS,
    STORAGE_CLASSES,
    ObjectProperties,
    tag_mapping,
)
from dbt.adapters.mzs3.formats.csv.dialect import CsvDialect
from dbt.adapters.mzs3.formats.format import FORMATS
from dbt.adapters.mzs3.rows.plan import MAX_PARTS
from dbt.adapters.mzs3.upload.names import is_numbered
from dbt.adapters.mzs3.upload.upload import MAX_UPLOAD_PARTS

_SIZES = ("max_file_size", "part_size", "max_multi_part_bytes_in_memory")

MIN_PART_SIZE = 5 << 20
MAX_PART_SIZE = 5 << 30


@dataclass(frozen=True)
class CopyOptions:
    """What a model's config asks for, checked; sizes in bytes.

    The text below a field is its row in `docs/options.md`, and so are those of the nested classes.
    """

    location: str
    """`s3://bucket/prefix`, or a SQL expression for one, which Spark evaluates. `mz_now()` is the
    start of the run in milliseconds since 1970, the same for the whole run."""
    aws_connection: str = DEFAULT_NAME
    """A connection of the profile."""
    format: Literal["csv", "parquet"] = "csv"
    """`csv` or `parquet`."""
    compression: Any = "none"
    """CSV: `none`, `gzip`, `zstd`. Parquet: `none`, `snappy`, `gzip`, `zstd`, `lz4`."""
    max_file_size: int = 256 << 20
    """How large a file may grow: bytes, or a number with one of `B kB MB GB TB`, in steps of
    1024."""
    part_size: int = 8 << 20
    """The size of one S3 upload part, at least `5MB`."""
    max_multi_part_bytes_in_memory: int = 100 << 20
    """How much one worker buffers in upload parts, at least twice `part_size`."""
    parts: int | None = None
    """How many parts the rows are hashed into, 10,000 at most. Without it, the cluster's default
    parallelism. Pin it for identical files on clusters of different sizes."""
    partition_by: tuple[str, ...] = ()
    """Columns whose values name folders, `country=NZ/`, and are not in the files."""
    single_file: str | None = None
    """A file name: the whole result is that one object."""
    on_existing: Literal["fail", "overwrite", "resume"] = "fail"
    """What happens at a location that is not empty: `fail`, `overwrite`, `resume`."""
    header: bool = False
    """CSV: a header line in every file."""
    dialect: CsvDialect = field(default_factory=CsvDialect)
    force_quote: tuple[str, ...] = ()
    """CSV: a list of columns whose values are always quoted, or `'*'`."""
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


KNOWN = tuple(option.name for option in option_fields(CopyOptions))


def parse_options(
    node: str, config: Mapping[str, Any], connections: Collection[str]
) -> CopyOptions:
    """The options in a model's config; keys that other parts of dbt read are not in `config`.

    Raises ConfigError with every unknown, unsupported and wrong option at once.
    """
    given = {key: value for key, value in config.items() if key not in IGNORED}
    problems = unknown_keys(given, KNOWN, "copy_to_s3")
    read = ConfigReader(given, problems)
    kind = read("format", choice(tuple(FORMATS))) or "csv"
    compressions = FORMATS[kind].compressions
    options: dict[str, Any] = {
        "location": read("location", text),
        "aws_connection": read("aws_connection", text),
        "format": kind,
        "compression": read("compression", choice(compressions)) or compressions[0],
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


def contradictions(
    options: CopyOptions, given: Mapping[str, Any], connections: Collection[str]
) -> list[str]:
    """Every one of them; `given` is the config as it was written."""
    return [
        *_of_where(options, given, connections),
        *_of_names(options),
        *_of_sizes(options),
        *_of_layout(options, given),
        *_of_format(options, given),
        *options.properties.problems(),
    ]


def _of_where(
    options: CopyOptions, given: Mapping[str, Any], connections: Collection[str]
) -> Iterator[str]:
    if given.get("location") in (None, ""):
        yield "location is required: 's3://bucket/prefix' or a SQL expression for one"
    if options.location.startswith(SCHEME) and ("||" in options.location):
        yield (
            f"location {options.location!r} is a literal, as it starts with {SCHEME}; in a SQL "
            "expression the texts are in quotes of their own: "
            "location=\"'s3://bucket/prefix/' || mz_now()\""
        )
    else:
        yield from literal_problems(options.location)
    if options.aws_connection not in connections:
        yield unknown_connection("aws_connection", options.aws_connection, connections)


def _of_names(options: CopyOptions) -> Iterator[str]:
    if options.single_file is not None and is_numbered(options.single_file):
        yield (
            f"single_file can't be {options.single_file!r}: files of parts have such names; "
            "choose another one"
        )


def _of_sizes(options: CopyOptions) -> Iterator[str]:
    if options.part_size < MIN_PART_SIZE:
        yield f"part_size must be at least 5MB, not {format_size(options.part_size)}"
    elif options.part_size > MAX_PART_SIZE:
        yield f"part_size can be 5GB at most, not {format_size(options.part_size)}"
    elif (
        options.single_file is None
        and options.max_file_size > options.part_size * MAX_UPLOAD_PARTS
    ):
        yield (
            f"max_file_size {format_size(options.max_file_size)} needs more than "
            f"{MAX_UPLOAD_PARTS} upload parts of {format_size(options.part_size)}; raise part_size"
        )
    if options.max_multi_part_bytes_in_memory < 2 * options.part_size:
        yield (
            "max_multi_part_bytes_in_memory must be at least twice part_size, which is "
            f"{format_size(options.part_size)}; it is "
            f"{format_size(options.max_multi_part_bytes_in_memory)}"
        )


def _of_layout(options: CopyOptions, given: Mapping[str, Any]) -> Iterator[str]:
    if options.single_file is not None:
        for key in ("parts", "partition_by", "max_file_size"):
            if given.get(key) is not None:
                yield f"{key} contradicts single_file, which is one file; leave out one of them"
    twice = sorted({n for n in options.partition_by if options.partition_by.count(n) > 1})
    if twice:
        yield f"partition_by names {', '.join(twice)} twice; leave one of them"


def _of_format(options: CopyOptions, given: Mapping[str, Any]) -> Iterator[str]:
    if options.format == "csv":
        yield from options.dialect.problems()
    for name, kind in FORMATS.items():
        for key in kind.own_options if name != options.format else ():
            if given.get(key) is not None:
                yield (
                    f"{key} is an option of {name.upper()}; format is {options.format}, so leave "
                    "it out"
                )
