"""What is said of the header that objects are compared with, and which first runs are refused."""

from dataclasses import replace

import pytest
from support.s3.stored_objects import problem_of
from support.source.fields import DIALECT

from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.formats.read.csv import CsvFormat
from dbt.adapters.mzs3.formats.read.format import Reading
from dbt.adapters.mzs3.formats.read.jsonl import JsonLinesFormat
from dbt.adapters.mzs3.formats.read.object_error import HEADER, HeaderProblem
from dbt.adapters.mzs3.source.executor.fetch import FetchSpec, HeaderFrom
from dbt.adapters.mzs3.source.fetch import header_hint, least_objects, refusal
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location

FIRST = HeaderFrom(is_first=True, is_found=True, origin="s3://acme-raw/orders/README")
DECLARED = HeaderFrom(is_first=True)


def spec(where: HeaderFrom, form: str = "csv") -> FetchSpec:
    made = FetchSpec(
        AwsConnection(),
        S3Location("acme-raw", ""),
        "lake.orders",
        ("id",),
        (Column("id"),),
        DIALECT,
        "",
    )
    return replace(made, header_from=where, format=form)


def test_where_a_header_comes_from():
    assert header_hint(spec(DECLARED)) == ""
    assert "is that of s3://acme-raw/orders/README, and is not pinned" in header_hint(spec(FIRST))
    assert header_hint(spec(FIRST), FIRST.origin) == (
        ". The header that it was compared with is that of the object's first record"
    )
    pinned = replace(FIRST, is_first=False)
    assert header_hint(spec(pinned)).startswith(
        ". The pinned header is that of s3://acme-raw/orders/README: to pin another one, start"
    )
    assert header_hint(spec(replace(pinned, origin=None))).startswith(
        ". The pinned header was found in an earlier object: to pin another one, start with: dbt"
    )


@pytest.mark.parametrize(
    ("where", "form", "counts", "refused"),
    [
        (FIRST, "csv", (3, 3, 1, 9, 0), None),
        (FIRST, "csv", (1, 1, 0, 9, 0), None),
        (FIRST, "csv", (1, 1, 1, 9, 0), "skip 1 object, and take 1 with any record"),
        (FIRST, "csv", (2, 0, 5, 0, 0), "skip 5 objects, and take none with any record"),
        (replace(FIRST, is_first=False), "csv", (1, 1, 5, 9, 0), None),
        (DECLARED, "csv", (1, 0, 5, 0, 0), None),
        (DECLARED, "csv", (0, 0, 5, 0, 0), "No object has the header that is declared"),
        (FIRST, "csv", (1, 1, 0, 0, 1), "reject 1 record, and take none"),
        (FIRST, "csv", (1, 1, 0, 1, 9), None),
        (FIRST, "jsonl", (1, 1, 0, 1, 9), "reject 9 records, and take 1"),
        (FIRST, "jsonl", (1, 1, 0, 1, 1), None),
        (DECLARED, "jsonl", (1, 1, 0, 1, 9), None),
    ],
)
def test_a_first_run_is_refused_that_takes_nothing_but_where_its_header_is_from(
    where, form, counts, refused
):
    names = ("objects", "read", "skipped", "rows", "rejected")
    text = refusal(spec(where, form), **dict(zip(names, counts, strict=True)))
    assert (text is None) == (refused is None)
    assert refused is None or refused in text


def test_a_first_run_takes_enough_to_tell_whether_its_header_is_wrong():
    skips = Reading(on_header_mismatch="skip_object")
    first = replace(spec(FIRST), reading=skips)
    later = replace(first, header_from=replace(FIRST, is_first=False))
    assert [least_objects(one) for one in (first, later, spec(FIRST))] == [3, 1, 1]


def test_other_keys_are_a_matter_of_the_header():
    lines = JsonLinesFormat("none", Reading())
    assert problem_of(lines, b'{"f1":1}', {"f0": "bigint"}).cause == HEADER
    assert problem_of(lines, b'{"f0":1.5}', {"f0": "bigint"}).cause == ""


@pytest.mark.parametrize(
    ("data", "cause"),
    [(b"f1\n1\n", HEADER), (b'a "b" c\n1\n', ""), (b"PK\x03\x04" + b"\0" * 99, "")],
)
def test_what_can_not_be_read_was_compared_with_no_header(data, cause):
    problem = problem_of(CsvFormat("by_suffix", Reading(), DIALECT), data, {"f0": "bigint"})
    assert (isinstance(problem, HeaderProblem), problem.cause) == (True, cause)
