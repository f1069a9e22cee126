"""The examples of Materialize's design "S3 Sources with Headers", by name."""

from __future__ import annotations

from typing import Any

import pytest
from support.source.fields import parse
from support.source.fields import purify_names as purify

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.formats.read.chunks import Chunk
from dbt.adapters.mzs3.formats.read.csv import CsvFormat
from dbt.adapters.mzs3.formats.read.format import Reading
from dbt.adapters.mzs3.formats.read.object_error import HeaderProblem
from dbt.adapters.mzs3.source.operations.show_definition import ShownDefinition, purified_sql

FOUND = ("id", "value")
ALIASES = [{"name": "a"}, {"name": "b"}]
SCAN = "FROM S3 DISCOVER OBJECTS MATCHING '**/*' USING BUCKET SCAN 'bucket'"
QUEUE = "FROM S3 DISCOVER OBJECTS MATCHING '**/*' USING SQS NOTIFICATIONS 'queuename'"
NOTIFIED = {"discover": [{"sqs_notifications": "queuename"}]}


def rewritten(found: tuple[str, ...] | None = None, **declared: Any) -> str:
    """The definition as purification has it; no object is looked at but for a header."""
    definition = parse(location="s3://bucket", pattern="**/*", **declared)
    assert (definition.header is True) == (found is not None)
    return purified_sql(ShownDefinition(definition, purify(definition, found), is_pinned=True))


def require_header(line: str, **reading: Any) -> None:
    decoder = CsvFormat("none", Reading(**reading)).decoder(FOUND, [])
    decoder.begin(Chunk(f"{line}\n1,2\n".encode(), 0, 1))


def test_with_header_is_rewritten_with_the_names_that_are_found() -> None:
    assert rewritten(FOUND) == (
        f"CREATE SOURCE orders {SCAN} FORMAT CSV WITH HEADER COLUMNS (id, value);"
    )


def test_with_header_and_aliases_keeps_both() -> None:
    assert rewritten(FOUND, columns=ALIASES) == (
        f"CREATE SOURCE orders (a, b) {SCAN} FORMAT CSV WITH HEADER COLUMNS (id, value);"
    )


def test_with_header_columns_stays_as_it_is() -> None:
    assert rewritten(header=["id", "value"]) == (
        f"CREATE SOURCE orders {SCAN} FORMAT CSV WITH HEADER COLUMNS (id, value);"
    )


def test_with_header_columns_and_aliases_stays_as_it_is() -> None:
    assert rewritten(header=["id", "value"], columns=ALIASES) == (
        f"CREATE SOURCE orders (a, b) {SCAN} FORMAT CSV WITH HEADER COLUMNS (id, value);"
    )


def test_an_object_with_another_header_is_an_error() -> None:
    require_header("id,value")
    with pytest.raises(
        HeaderProblem, match="header is id,price but the source's header is id,value"
    ):
        require_header("id,price")


def test_aliases_are_not_what_a_header_is_compared_with() -> None:
    definition = parse(header=["id", "value"], columns=ALIASES)
    assert purify(definition, None).header == FOUND
    with pytest.raises(HeaderProblem):
        require_header("a,b")


def test_with_header_and_no_object_is_refused() -> None:
    definition = parse(**NOTIFIED)
    with pytest.raises(SourceError, match=r"declare the names as `header: \[name, ...\]`"):
        purify(definition, None)


def test_a_queue_with_header_columns_needs_no_object() -> None:
    assert rewritten(header=["id", "value"], **NOTIFIED) == (
        f"CREATE SOURCE orders {QUEUE} FORMAT CSV WITH HEADER COLUMNS (id, value);"
    )


def test_a_queue_beside_the_scan_is_shown_with_it() -> None:
    both = ["bucket_scan", {"sqs_notifications": "https://sqs.example.com/1/queuename"}]
    assert ", SQS NOTIFICATIONS 'queuename' FORMAT CSV" in rewritten(FOUND, discover=both)


def test_with_a_number_of_columns_names_them() -> None:
    assert rewritten(header=False, column_count=2) == (
        f"CREATE SOURCE orders (column1, column2) {SCAN} FORMAT CSV WITH 2 COLUMNS;"
    )


def test_with_a_number_of_columns_and_aliases_stays_as_it_is() -> None:
    assert rewritten(header=False, columns=ALIASES) == (
        f"CREATE SOURCE orders (a, b) {SCAN} FORMAT CSV WITH 2 COLUMNS;"
    )


def test_reordering_of_columns() -> None:
    require_header("value,id", header_match="reorder")
    with pytest.raises(HeaderProblem):
        require_header("value,id,more", header_match="reorder")


def test_subsets_of_columns() -> None:
    require_header("more,value,id", header_match="subset")
    with pytest.raises(HeaderProblem, match="'value' is missing"):
        require_header("id,more", header_match="subset")


@pytest.mark.parametrize("match", ["reorder", "subset"])
def test_the_statement_says_how_headers_are_matched(match: str) -> None:
    assert rewritten(FOUND, header_match=match) == (
        f"CREATE SOURCE orders {SCAN} FORMAT CSV WITH HEADER COLUMNS (id, value) "
        f"WITH (header_match = '{match}');"
    )
