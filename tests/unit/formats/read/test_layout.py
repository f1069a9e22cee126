"""Headers in another order or with more names, matched by name."""

import pytest

from dbt.adapters.mzs3.formats.read.chunks import Chunk
from dbt.adapters.mzs3.formats.read.columns import RecordLayout
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
