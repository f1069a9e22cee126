"""Options that are right by themselves, and wrong together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.mzs3.aws.location import SCHEME
from dbt.adapters.mzs3.aws.named import literal_problems, unknown_connection
from dbt.adapters.mzs3.config.size import format_size
from dbt.adapters.mzs3.export.keys import OF_CSV
from dbt.adapters.mzs3.upload.names import is_numbered
from dbt.adapters.mzs3.upload.upload import MAX_UPLOAD_PARTS

if TYPE_CHECKING:
    from dbt.adapters.mzs3.export.options import CopyOptions

MIN_PART_SIZE = 5 << 20
MAX_PART_SIZE = 5 << 30


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
        return
    for key in OF_CSV:
        if given.get(key) is not None:
            yield f"{key} is an option of CSV; format is {options.format}, so leave it out"
