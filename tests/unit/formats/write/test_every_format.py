"""What holds for each format that exports write; one that is new is tested here by its name."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from support.export.format_files import EACH, ROWS, File, files, writer

from dbt.adapters.mzs3.formats.write import FORMATS
from dbt.adapters.mzs3.formats.write.format import ExportFormat
from dbt.adapters.mzs3.options.option import as_config, convert, options_of


def rows_in(file_format: ExportFormat, data: bytes) -> int:
    return file_format.count_rows(pa.BufferReader(data))


@pytest.mark.parametrize("file_format", EACH)
def test_rows_are_counted_in_every_file(file_format: ExportFormat) -> None:
    found = files(file_format, [ROWS], limit=100_000)
    assert len(found) > 1
    assert sum(rows_in(file_format, data) for data in found) == ROWS.num_rows


@pytest.mark.parametrize("file_format", EACH)
def test_files_are_about_as_large_as_was_asked_for(file_format: ExportFormat) -> None:
    """How large exactly is for the format to say."""
    sizes = [len(data) for data in files(file_format, [ROWS], limit=100_000)]
    assert all(30_000 < size < 200_000 for size in sizes[:-1])


@pytest.mark.parametrize("file_format", EACH)
def test_bytes_do_not_depend_on_batches(file_format: ExportFormat) -> None:
    cut = [ROWS.slice(start, 777) for start in range(0, ROWS.num_rows, 777)]
    assert files(file_format, cut, 100_000) == files(file_format, [ROWS], 100_000)


@pytest.mark.parametrize("file_format", EACH)
def test_a_file_without_rows_has_none(file_format: ExportFormat) -> None:
    [data] = files(file_format, [ROWS.slice(0, 0)], limit=1 << 20)
    assert rows_in(file_format, data) == 0


@pytest.mark.parametrize("file_format", EACH)
def test_what_is_no_file_is_an_error_that_verification_knows(file_format: ExportFormat) -> None:
    with pytest.raises((OSError, pa.ArrowException, ValueError)):
        rows_in(file_format, b'1,"x')


@pytest.mark.parametrize("file_format", EACH)
def test_it_travels_to_workers(file_format: ExportFormat) -> None:
    assert pickle.loads(pickle.dumps(file_format)) == file_format


@pytest.mark.parametrize("file_format", EACH)
def test_a_file_that_is_given_up_writes_nothing_more(file_format: ExportFormat) -> None:
    written, sink = writer(file_format), File()
    file = written.open(sink)
    for piece in written.pieces(ROWS):
        file.take(piece, 0)
    before = sink.data
    del file
    assert sink.data == before


@pytest.mark.parametrize("file_format", EACH)
def test_options_read_back_from_what_the_manifest_records(file_format: ExportFormat) -> None:
    problems: list[str] = []
    config: dict[str, Any] = {**as_config(file_format)}
    assert convert(type(file_format), config, problems) == file_format
    assert problems == []


@pytest.mark.parametrize("name", FORMATS)
def test_its_options_are_its_fields(name: str) -> None:
    each = FORMATS[name]
    assert {"compression", *each.reading_options} <= options_of(each).keys()


def test_names_of_files_tell_formats_apart() -> None:
    suffixes = [{kind.suffix for kind in each.file_types.values()} for each in FORMATS.values()]
    assert sum(map(len, suffixes)) == len(set().union(*suffixes))
