"""The options of a `copy_to_s3` model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args
from urllib.parse import urlencode

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.formats.write.format import ExportFormat
from dbt.adapters.mzs3.formats.write.registry import FORMATS
from dbt.adapters.mzs3.options.values import (
    IGNORED,
    SIZES,
    ConfigReader,
    choice,
    file_name,
    format_size,
    names,
    parse_size,
    tag_problems,
    text,
    unknown_keys,
    upload_problems,
    whole_number,
)
from dbt.adapters.mzs3.rows.plan import MAX_PARTS
from dbt.adapters.mzs3.store.connection import DEFAULT_NAME
from dbt.adapters.mzs3.store.location import option_problems, unknown_connection
from dbt.adapters.mzs3.upload.folders import escaped
from dbt.adapters.mzs3.upload.names import number_of

OnExisting = Literal["fail", "overwrite", "resume"]

_ENCRYPTIONS = ("AES256", "aws:kms", "aws:kms:dsse")
_STORAGE_CLASSES = (
    "STANDARD",
    "STANDARD_IA",
    "ONEZONE_IA",
    "INTELLIGENT_TIERING",
    "GLACIER_IR",
    "GLACIER",
    "DEEP_ARCHIVE",
    "REDUCED_REDUNDANCY",
)
_ACLS = (
    "private",
    "public-read",
    "public-read-write",
    "authenticated-read",
    "aws-exec-read",
    "bucket-owner-read",
    "bucket-owner-full-control",
)


def _tag_mapping(value: Any) -> Mapping[str, str]:
    """Tags as a mapping of texts to texts; raises ValueError."""
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping of tag to text, not {value!r}")
    wrong = [k for k, v in value.items() if not isinstance(k, str) or not isinstance(v, str)]
    if wrong:
        raise ValueError(f"must map texts to texts; {wrong[0]!r} does not")
    return dict(value)


PROPERTIES: Mapping[str, Callable[[Any], Any]] = {
    "encryption": choice(_ENCRYPTIONS),
    "kms_key_id": text,
    "storage_class": choice(_STORAGE_CLASSES),
    "object_tags": _tag_mapping,
    "acl": choice(_ACLS),
}
"""The options of models, with what converts their values."""


# Of every format, with what converts their values.
_SHARED: Mapping[str, Callable[[Any], Any]] = {
    "location": text,
    "aws_connection": text,
    **dict.fromkeys(SIZES, parse_size),
    "parts": whole_number(1, MAX_PARTS),
    "partition_by": names,
    "single_file": file_name,
    "on_existing": choice(get_args(OnExisting)),
}
_OF_FORMATS = (key for each in FORMATS.values() for key in each.options)
_FIRST = ("location", "aws_connection", "format", "compression")
KNOWN = tuple(dict.fromkeys((*_FIRST, *_SHARED, *_OF_FORMATS, *PROPERTIES)))


@dataclass(frozen=True)
class ObjectProperties:
    """Encryption, storage class, tags and canned ACL of objects; None is the bucket's default."""

    encryption: str | None = None
    """`AES256` (SSE-S3), `aws:kms` or `aws:kms:dsse`. Without it, the bucket's."""
    kms_key_id: str | None = None
    """The key of `aws:kms` or `aws:kms:dsse`."""
    storage_class: str | None = None
    """As S3 names it, such as `STANDARD_IA`. Without it, the bucket's. The manifest is always
    `STANDARD`."""
    object_tags: Mapping[str, str] = field(default_factory=dict)
    """At most ten S3 object tags, as a mapping. (dbt has a config `tags` of its own.)"""
    acl: str | None = None
    """A canned ACL, such as `bucket-owner-full-control`."""

    def for_files(self) -> dict[str, str]:
        """The arguments of CreateMultipartUpload."""
        storage = {"StorageClass": self.storage_class} if self.storage_class else {}
        return {**self.for_notes(), **storage}

    def for_notes(self) -> dict[str, str]:
        """The arguments of PutObject for the manifest, whose storage class is the bucket's."""
        given = {
            "ServerSideEncryption": self.encryption,
            "SSEKMSKeyId": self.kms_key_id,
            "Tagging": urlencode(self.object_tags) or None,
            "ACL": self.acl,
        }
        return {name: value for name, value in given.items() if value is not None}

    def problems(self) -> list[str]:
        """What is wrong with the properties, in words."""
        problems = []
        if self.kms_key_id is not None and not (self.encryption or "").startswith("aws:kms"):
            problems.append("kms_key_id needs encryption to be aws:kms or aws:kms:dsse")
        return [*problems, *tag_problems("object_tags", self.object_tags)]


@dataclass(frozen=True)
class CopyOptions:
    """The options of a model, checked; sizes in bytes.

    The text below a field is its row in `docs/options.md`, and so are those of the nested classes.
    """

    location: str
    """`s3://bucket/prefix`, or a SQL expression for one. `mz_now()` is the
    start of the run in milliseconds since 1970, the same for the whole run."""
    format: ExportFormat
    aws_connection: str = DEFAULT_NAME
    """A connection of the profile."""
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
    on_existing: OnExisting = "fail"
    """What happens at a location that is not empty: `fail`, `overwrite`, `resume`."""
    properties: ObjectProperties = field(default_factory=ObjectProperties)

    def as_config(self) -> dict[str, Any]:
        """The options as a model's config spells them, with those of the format."""
        shared: dict[str, Any] = {
            "location": self.location,
            "aws_connection": self.aws_connection,
            "format": self.format.name,
            "compression": self.format.compression,
            **{name: format_size(getattr(self, name)) for name in SIZES},
            "on_existing": self.on_existing,
        }
        if self.single_file is not None:
            del shared["max_file_size"]
            shared["single_file"] = self.single_file
        else:
            shared |= {"parts": self.parts, "partition_by": list(self.partition_by)}
        return {**shared, **self.format.own_config()}


def parse_options(
    node: str, config: Mapping[str, Any], connections: Collection[str]
) -> CopyOptions:
    """The options in a model's config, without keys that other parts of dbt read.

    Raises ConfigError with every unknown, wrong and contradicting option at once.
    """
    given = {key: value for key, value in config.items() if key not in IGNORED}
    problems = unknown_keys(given, KNOWN, "copy_to_s3")
    read = ConfigReader(given, problems)
    shared = {"location": "", **read.all(_SHARED)}
    kinds = tuple(FORMATS)
    written = FORMATS[read("format", choice(kinds)) or kinds[0]].read(read)
    options = CopyOptions(
        format=written, properties=ObjectProperties(**read.all(PROPERTIES)), **shared
    )
    if options.aws_connection not in connections:
        problems.append(unknown_connection("aws_connection", options.aws_connection, connections))
    problems += [
        *option_problems(given.get("location")),
        *_of_sizes(options),
        *_contradictions(options, given),
        *options.properties.problems(),
    ]
    if problems:
        raise ConfigError(node, problems)
    return options


def _of_sizes(options: CopyOptions) -> Iterator[str]:
    of_one_file = options.single_file is not None  # whose parts grow, and whose size is S3's
    sized = replace(options, max_file_size=options.part_size) if of_one_file else options
    yield from upload_problems(sized, in_memory=2)


def _contradictions(options: CopyOptions, given: Mapping[str, Any]) -> Iterator[str]:
    if options.single_file is not None:
        if number_of(options.single_file) is not None:
            yield (
                f"single_file can't be {options.single_file!r}: files of parts have such names; "
                "choose another one"
            )
        for key in ("parts", "partition_by", "max_file_size"):
            if given.get(key) is not None:
                yield f"{key} contradicts single_file, which is one file; leave out one of them"
    twice = sorted({n for n in options.partition_by if options.partition_by.count(n) > 1})
    if twice:
        yield f"partition_by names {', '.join(twice)} twice; leave one of them"
    yield from options.format.problems()
    for other in FORMATS.values():
        for key in other.options:
            if key not in options.format.options and given.get(key) is not None:
                yield (
                    f"{key} is an option of {other.title}; format is {options.format.name}, so "
                    "leave it out"
                )


def reader_warnings(options: CopyOptions) -> Iterator[str]:
    """What some readers of a location make of its names, one text for each name."""
    told = {f"partition_by has {name}": _of_folders(name) for name in options.partition_by}
    told[f"single_file is {options.single_file}"] = _of_file(options.single_file or "")
    for subject, makings in told.items():
        if made := ", and ".join(makings):
            yield f"{subject}: {made}; choose another name, or readers that take this one"


def _of_folders(column: str) -> Iterator[str]:
    if column.startswith(("_", ".")):
        readers = "pyarrow passes" if column[0] == "_" else "Spark, Hive and pyarrow pass"
        yield (
            f"{readers} over folders whose names begin so, unless told otherwise, and find no "
            "rows, without an error"
        )
    if escaped(column) != column:
        yield f"DuckDB shows the column as folders have it, {escaped(column)}"


def _of_file(name: str) -> Iterator[str]:
    if name.startswith("."):
        yield (
            "readers of the location, such as Spark and pyarrow, pass over names that begin with "
            "a dot"
        )
    if ":" in name:
        yield "Spark can't read a file whose name has a colon"
