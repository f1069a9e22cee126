"""The options of a `copy_to_s3` model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from dbt.adapters.mzs3.formats.write import FORMATS
from dbt.adapters.mzs3.formats.write.format import ExportFormat
from dbt.adapters.mzs3.options.groups import ObjectProperties, UploadSizes
from dbt.adapters.mzs3.options.option import as_config, group, option, options_of, read, variant
from dbt.adapters.mzs3.options.values import IGNORED, choice, file_name, names, text, whole_number
from dbt.adapters.mzs3.rows.plan import MAX_PARTS
from dbt.adapters.mzs3.store.connection import DEFAULT_NAME
from dbt.adapters.mzs3.store.location import connection_problems, option_problems
from dbt.adapters.mzs3.upload.folders import escape_folder
from dbt.adapters.mzs3.upload.names import number_of

OnExisting = Literal["fail", "overwrite", "resume"]
_PART_KEYS = ("parts", "partition_by")


@dataclass(frozen=True)
class CopyOptions:
    """The checked options of a `copy_to_s3` model."""

    location: str = option(text, blank="")
    """`s3://bucket/prefix`, or a SQL expression for one. `mz_now()` is the
    start of the run in milliseconds since 1970, the same for the whole run."""
    aws_connection: str = option(text, DEFAULT_NAME)
    """A connection of the profile."""
    sizes: UploadSizes = group(UploadSizes)
    parts: int | None = option(whole_number(1, MAX_PARTS), None)
    """How many parts the rows are hashed into, 10,000 at most. Without it, the cluster's default
    parallelism. Pin it for identical files on clusters of different sizes."""
    partition_by: tuple[str, ...] = option(names, ())
    """Columns whose values name folders, `country=NZ/`, and are not in the files."""
    single_file: str | None = option(file_name, None)
    """A file name: the whole result is that one object."""
    on_existing: OnExisting = option(choice(get_args(OnExisting)), "fail")
    """What happens at a location that is not empty: `fail`, `overwrite`, `resume`."""
    format: ExportFormat = variant(FORMATS, after="aws_connection")
    properties: ObjectProperties = group(ObjectProperties)

    def as_config(self) -> dict[str, Any]:
        """The options as users write them, without object properties and unused ones."""
        unused = ("single_file",) if self.single_file is None else (*_PART_KEYS, "max_file_size")
        unrecorded = {*unused, *options_of(ObjectProperties)}
        config = {key: value for key, value in as_config(self).items() if key not in unrecorded}
        # These come after `on_existing`, as in the manifests of earlier versions.
        format_keys = [key for key in options_of(type(self.format)) if key != "compression"]
        for key in (*_PART_KEYS, "single_file", *format_keys):
            if key in config:
                config[key] = config.pop(key)
        return config

    def problems(self, given: Mapping[str, Any]) -> Iterator[str]:
        """The problems of the location and the names, and options that contradict each other."""
        yield from option_problems(given.get("location"))
        if self.single_file is not None:
            if number_of(self.single_file) is not None:
                yield (
                    f"single_file can't be {self.single_file!r}: files of parts have such names; "
                    "choose another one"
                )
            for key in (*_PART_KEYS, "max_file_size"):
                if key in given:
                    yield (
                        f"{key} contradicts single_file, which is one file; leave out one of them"
                    )
        repeated = sorted({n for n in self.partition_by if self.partition_by.count(n) > 1})
        if repeated:
            yield f"partition_by names {', '.join(repeated)} twice; leave one of them"


def parse_options(
    node: str, config: Mapping[str, Any], connections: Collection[str]
) -> CopyOptions:
    """Parses the options in a model's config, apart from the IGNORED keys, which are dbt's.

    Raises ConfigError with every unknown, wrong and contradicting option at once.
    """
    return read(
        CopyOptions,
        {key: value for key, value in config.items() if key not in IGNORED},
        node,
        of="copy_to_s3",
        check=lambda options: connection_problems(options.aws_connection, connections),
    )


def reader_warnings(options: CopyOptions) -> Iterator[str]:
    """A warning for each name that some readers of the location ignore or misread."""
    effects = {f"partition_by has {name}": _folder_effects(name) for name in options.partition_by}
    effects[f"single_file is {options.single_file}"] = _file_effects(options.single_file or "")
    for subject, texts in effects.items():
        if text := ", and ".join(texts):
            yield f"{subject}: {text}; choose another name, or readers that take this one"


def _folder_effects(column: str) -> Iterator[str]:
    if column.startswith(("_", ".")):
        readers = "pyarrow passes" if column[0] == "_" else "Spark, Hive and pyarrow pass"
        yield (
            f"{readers} over folders whose names begin so, unless told otherwise, and find no "
            "rows, without an error"
        )
    if escape_folder(column) != column:
        yield f"DuckDB shows the column as folders have it, {escape_folder(column)}"


def _file_effects(name: str) -> Iterator[str]:
    if name.startswith("."):
        yield (
            "readers of the location, such as Spark and pyarrow, pass over names that begin with "
            "a dot"
        )
    if ":" in name:
        yield "Spark can't read a file whose name has a colon"
