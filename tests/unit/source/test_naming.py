"""Which field each declared column is: by its name, where the header has it, in every format."""

import io
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.s3.stored_objects import stored
from support.source.avro_files import file_of
from support.source.fields import parse, text_of
from support.source.fields import purify_names as purify

from dbt.adapters.mzs3.formats.read.format import EXACT, FORMAT_NAMES, HEADER_MATCHES, JSONL
from dbt.adapters.mzs3.source.executor.fetch import open_format
from dbt.adapters.mzs3.source.ingest import fetch_spec
from dbt.adapters.mzs3.source.pinning import Pin
from dbt.adapters.mzs3.source.purify import PinnedDefinition, contradictions
from dbt.adapters.mzs3.source.purify import purify as purified
from dbt.adapters.mzs3.source.run import SourceRun

PAGE = Path(__file__).parents[3] / "docs" / "s3-csv-source" / "columns.md"
NAMES = ("net", "gross", "tax")


def object_of(form: str, values: dict[str, int]) -> bytes:
    """One record with these fields, in this order."""
    if form == "csv":
        return f"{','.join(values)}\n{','.join(map(str, values.values()))}\n".encode()
    if form == "jsonl":
        return json.dumps(values).encode()
    if form == "avro":
        fields = [{"name": name, "type": "long"} for name in values]
        return file_of({"type": "record", "name": "row", "fields": fields}, [values])
    sink = io.BytesIO()
    pq.write_table(pa.table({name: [value] for name, value in values.items()}), sink)
    return sink.getvalue()


def read(definition, first: bytes, *others: bytes) -> list[dict[str, int]]:
    """The records of each object, as a run reads them that pins the header of the first."""
    form = open_format(definition.format, definition.dialect, "none", definition.reading)
    pinned = PinnedDefinition.from_json(purified(definition, form.fields(stored(first))).to_json())
    assert [column.name for column in pinned.columns] == [c.name for c in definition.columns]
    spec = fetch_spec(SourceRun(None, definition, None), Pin(pinned, None, True))
    decoder = form.decoder(spec.header, spec.columns)
    objects = [stored(data) for data in (first, *others)]
    rows = [row for one in objects for part in decoder(one) for row in part.batch.to_pylist()]
    # As small objects are read, where all are of one form.
    if len(objects) > 1 and (together := getattr(decoder, "together", None)) is not None:
        joined = together(objects)
        assert joined is None or joined[0].to_pylist() == rows
    return rows


@given(
    form=st.sampled_from(FORMAT_NAMES),
    match=st.sampled_from(HEADER_MATCHES),
    declared=st.permutations(NAMES),
    orders=st.lists(st.permutations(NAMES), min_size=1, max_size=3),
)
def test_a_declared_name_is_the_field_of_its_name(form, match, declared, orders):
    if match == EXACT and form != JSONL:
        orders = orders[:1] * len(orders)
    columns = [{"name": name, "data_type": "bigint"} for name in declared]
    objects = [
        {name: 10 * number + NAMES.index(name) for name in order}
        for number, order in enumerate(orders)
    ]
    definition = parse(format=form, header_match=match, columns=columns)
    assert read(definition, *[object_of(form, one) for one in objects]) == objects


@given(form=st.sampled_from(FORMAT_NAMES), declared=st.permutations(NAMES[:2]))
def test_a_subset_takes_the_declared_names_alone(form, declared):
    definition = parse(
        format=form,
        header_match="subset",
        columns=[{"name": name, "data_type": "bigint"} for name in declared],
    )
    values = dict(zip(NAMES, (1, 2, 3), strict=True))
    (row,) = read(definition, object_of(form, values))
    assert row == {"net": 1, "gross": 2}


def read_cases():
    table = PAGE.read_text().partition("## Cases")[2].partition("\n\nWith `subset`")[0]
    for line in table.splitlines():
        if line.startswith("| ") and not line.startswith(("| ---", "| `columns`")):
            yield [cell.strip() for cell in line.strip("| ").split(" | ")]


CASES = list(read_cases())


@pytest.mark.parametrize("case", CASES, ids=" | ".join)
def test_a_case_of_the_docs(case):
    declared, header, matches, then = case
    names = re.findall(r"\w+", re.findall("`([^`]+)`", header)[0])
    columns = [{"name": n} for n in re.findall(r"\w+", declared)] if declared != "none" else []
    listed = {"header": names} if "listed" in header else {}
    told = re.findall("`([^`]+)`", then)[0]
    for match in HEADER_MATCHES if matches == "any" else re.findall(r"\w+", matches):
        definition = parse(columns=columns, header_match=match, **listed)
        if then.startswith("an error"):
            assert told in text_of(lambda of=definition: purify(of, names))
            continue
        pinned = purify(definition, names)
        field_of = dict(zip(pinned.fetched(), pinned.header, strict=True))
        shown = ", ".join(f"{column.name} = {field_of[column]}" for column in pinned.columns)
        assert shown == told
        assert contradictions(pinned, definition) == []


def test_there_are_cases():
    assert len(CASES) > 12


TYPED = [{"name": "a", "data_type": "int"}, {"name": "b"}, {"name": "at", "data_type": "date"}]


@pytest.mark.parametrize(
    ("first", "is_record"),
    [
        (("1", "x", "2024-02-29"), True),
        (("1", "x", ""), True),
        (("", "x", ""), False),
        (("1", "x", "day"), False),
        (("id", "note", "day"), False),
    ],
)
def test_a_first_line_that_looks_like_a_record_is_no_header(first, is_record):
    definition = parse(columns=TYPED)
    text = ""
    try:
        purify(definition, first)
    except Exception as exc:
        text = str(exc)
    assert ("it looks like a record, not a header. Declare `header: false`" in text) == is_record
    assert purify(parse(columns=TYPED, header=list(first)), None).header == first


def test_what_is_pasted_of_a_pin_is_the_same_pin():
    new = purify(parse(columns=[{"name": "gross"}, {"name": "net"}]), ("net", "gross"))
    again = parse(columns=[{"name": "gross"}, {"name": "net"}], header=["net", "gross"])
    assert purify(again, None) == new
    assert new.sql() == "FORMAT CSV WITH HEADER COLUMNS (net, gross)"
