"""Records are counted as they were written, whatever the dialect and however they are read."""

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.examples import examples

from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.write.csv.files import RecordCounter
from dbt.adapters.mzs3.formats.write.csv.format import CsvEncoder

DIALECTS = {
    "default": CsvDialect(),
    "backslash": CsvDialect(escape="\\"),
    "backslash that is NULL": CsvDialect(escape="\\", null="\\N"),
    "apostrophes": CsvDialect(delimiter="\t", quote="'", escape="'", null="NULL"),
    "escape is the delimiter": CsvDialect(escape=","),
    "escape is the newline": CsvDialect(escape="\n"),
    "escape is ]": CsvDialect(delimiter=";", quote="^", escape="]", null="-"),
    "quote is a letter": CsvDialect(quote="n", escape="\\", null="x"),
}


def written(rows, dialect, force_quote=frozenset(), header=False):
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    names = ['a "name",\nof two lines', "b"][: len(columns)]
    batch = pa.record_batch(columns, names=names)
    encoder = CsvEncoder(batch.schema, dialect, force_quote)
    text = "".join(encoder.encode(batch).to_pylist()).encode()
    return (encoder.header() if header else b"") + text


def count(text, dialect, size):
    counter = RecordCounter(dialect)
    for start in range(0, len(text), size):
        counter.feed(text[start : start + size])
    assert not counter.is_inside
    return counter.records


@pytest.mark.parametrize("name", DIALECTS)
@examples(80)
@given(data=st.data())
def test_any_rows(name, data):
    dialect = DIALECTS[name]
    special = dialect.delimiter + dialect.quote + dialect.escape + "\n\rab" + dialect.null
    value = st.none() | st.text(st.sampled_from(special), max_size=6)
    width = data.draw(st.sampled_from([1, 2]))
    rows = data.draw(st.lists(st.tuples(*[value] * width), min_size=1, max_size=8))
    header = data.draw(st.booleans())
    forced = data.draw(st.sampled_from([frozenset(), frozenset({"b"}), "*"]))
    text = written(rows, dialect, forced, header)
    assert count(text, dialect, data.draw(st.integers(1, 9))) == len(rows) + header


@pytest.mark.parametrize("name", DIALECTS)
def test_text_larger_than_a_block(name):
    dialect = DIALECTS[name]
    value = dialect.quote * 3 + dialect.escape * 5 + "\n\n" + dialect.delimiter
    text = written([(value, "b"), (None, value)] * 20, dialect)
    assert count(text, dialect, 7) == count(text, dialect, len(text)) == 40


@given(st.lists(st.none() | st.just(""), min_size=1))
@example([None])
def test_a_single_null_is_an_empty_line_and_a_row(values):
    text = written([(value,) for value in values], CsvDialect())
    assert count(text, CsvDialect(), 2) == len(values)


@pytest.mark.parametrize("name", DIALECTS)
def test_text_that_ends_in_quotes_says_so(name):
    dialect = DIALECTS[name]
    counter = RecordCounter(dialect)
    counter.feed(f"a{dialect.delimiter}{dialect.quote}b\n".encode())
    assert counter.is_inside
    assert counter.records == 0
