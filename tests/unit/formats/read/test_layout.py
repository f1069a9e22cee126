"""Headers in another order or with more names, matched by name."""

import pytest

from dbt.adapters.mzs3.formats.read.chunks import Chunk
from dbt.adapters.mzs3.formats.read.columns import Column, RecordLayout
from dbt.adapters.mzs3.formats.read.csv import CsvFormat
from dbt.adapters.mzs3.formats.read.format import Reading
from dbt.adapters.mzs3.formats.read.object_error import HeaderProblem

PINNED = ("id", "amount")


def layout_of(header: str, match: str, pinned=PINNED) -> RecordLayout:
    decoder = CsvFormat("none", Reading(header_match=match)).decoder(pinned, [])
    layout, rest = decoder.begin(Chunk(f"{header}\n1,2\n".encode(), 0, 1))
    assert rest.data == b"1,2\n"
    return layout


@pytest.mark.parametrize("match", ["exact", "reorder", "subset"])
def test_the_pinned_header_goes_with_every_way(match):
    assert layout_of("id,amount", match) == RecordLayout.in_order(2)


@pytest.mark.parametrize("match", ["reorder", "subset"])
def test_another_order(match):
    assert layout_of("amount,id", match) == RecordLayout(2, (1, 0))


@pytest.mark.parametrize(
    ("header", "fields"),
    [
        ("x,id,y,amount", (1, 3)),
        ("amount,,x,x,_mz_object,id", (5, 0)),
        ("id,amount,ID", (0, 1)),
    ],
)
def test_a_subset_leaves_out_other_names_whatever_they_are(header, fields):
    layout = layout_of(header, "subset")
    assert layout == RecordLayout(header.count(",") + 1, fields)


@pytest.mark.parametrize(
    ("header", "match", "difference"),
    [
        ("id", "reorder", "'amount' is missing"),
        ("id", "subset", "'amount' is missing"),
        ("x,Id", "subset", "'id' is missing (1 more)"),
        ("id,amount,x,y", "reorder", "'x' is not one of them (1 more)"),
        ("id,amount,id", "reorder", "'id' is there 2 times"),
        ("id,amount,id", "subset", "'id' is there 2 times"),
        ("id,Amount", "reorder", "'amount' is missing, 'Amount' is not one of them"),
        ("id, amount", "subset", "'amount' is missing"),
    ],
)
def test_headers_that_do_not_go(header, match, difference):
    with pytest.raises(HeaderProblem) as raised:
        layout_of(header, match)
    assert raised.value.problem == (
        f"header is {header} but the names of the source's header are id,amount, in any order: "
        f"{difference}"
    )
    assert raised.value.advice.startswith(
        "Correct the object or remove it, or narrow `pattern` so that it is left out, then run "
        "again"
    )


@pytest.mark.parametrize(
    ("header", "match", "layout"),
    [
        ("id,amount,x,y", "exact", RecordLayout.in_order(4)),
        ("id,amount", "exact", RecordLayout(2, (0, 1), (2, 3))),
        ("id,amount,y", "exact", RecordLayout(3, (0, 1, 2), (2,))),
        ("y,amount,id", "reorder", RecordLayout(3, (2, 1, 0), (2,))),
        ("b,amount,id", "subset", RecordLayout(3, (2, 1), (2, 3))),
    ],
)
def test_columns_that_were_added_may_be_missing(header, match, layout):
    columns = [Column(name, is_added=name in "xy") for name in ("id", "amount", "x", "y")]
    decoder = CsvFormat("none", Reading(header_match=match)).decoder(
        ("id", "amount", "x", "y"), columns
    )
    found, rest = decoder.begin(Chunk(f"{header}\n".encode(), 0, 1))
    assert (found, rest.data) == (layout, b"")


@pytest.mark.parametrize("header", ["id,x", "id,amount,y,x", "x,id,amount", "id,amount,x,y,z"])
def test_columns_that_were_there_from_the_first_may_not(header):
    columns = [Column(name, is_added=name in "xy") for name in ("id", "amount", "x", "y")]
    decoder = CsvFormat("none", Reading()).decoder(("id", "amount", "x", "y"), columns)
    with pytest.raises(HeaderProblem) as raised:
        decoder.begin(Chunk(f"{header}\n".encode(), 0, 1))
    assert ("on_new_columns: add" in raised.value.advice) == (header == "id,amount,x,y,z")


@pytest.mark.parametrize("extra", ["fail", "rescue"])
@pytest.mark.parametrize("bad", ["", "x\n"])
def test_where_columns_are_missing_rows_and_rejects_are_right(extra, bad):
    columns = [Column("id", "int"), Column("x", is_added=True), Column("y", "int", is_added=True)]
    reading = Reading(on_bad_row="reject", extra_columns=extra)
    decoder = CsvFormat("none", reading).decoder(("id", "x", "y"), columns)
    chunk = Chunk(f"id,y\n1,2\n{bad}3,a\n4,5,6\n7,8\n".encode(), 0, 1, last=True)
    layout, rest = decoder.begin(chunk)
    found = decoder.decode(rest, layout)
    rescued = [["6"]] if extra == "rescue" else []
    rows = [list(row.values()) for row in found.batch.to_pylist()]
    none = [None] * len(rescued)
    assert rows == [
        [1, None, 2, *none],
        *([4, None, 5, *one] for one in rescued),
        [7, None, 8, *none],
    ]
    columns_of_rejects = [reject.column for reject in found.rejects if reject.column]
    assert columns_of_rejects == ["y"]
