"""COPY's options change our bytes as they change PostgreSQL's."""

from random import Random

import pyarrow as pa
import pytest
from psycopg import sql
from support.golden import postgres as g
from support.golden import values as v
from support.golden.dialects import COLUMNS, DIALECTS

from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.write.csv.format import CsvEncoder
from dbt.adapters.mzs3.formats.write.format import in_pieces

pytestmark = pytest.mark.postgres

FORCED = {
    "none": frozenset(),
    "all": "*",
    "some": frozenset({"number", "words", "last"}),
}


@pytest.fixture(scope="module")
def table(postgres):
    """Rows of all types, loaded once for all options."""
    random = Random("table")
    columns = [v.sample(random, make, []) for _, make in COLUMNS.values()]
    kinds = [kind for kind, _ in COLUMNS.values()]
    postgres.load(list(COLUMNS), kinds, list(zip(*columns, strict=True)))
    arrays = [g.arrow_array(kind, values) for kind, values in zip(kinds, columns, strict=True)]
    return pa.record_batch(arrays, names=list(COLUMNS))


def force_quote_option(forced):
    if not forced:
        return []
    if forced == "*":
        return [sql.SQL("force_quote *")]
    names = sql.SQL(", ").join(map(sql.Identifier, sorted(forced)))
    return [sql.SQL("force_quote ({})").format(names)]


@pytest.mark.parametrize("forced", FORCED)
@pytest.mark.parametrize("name", DIALECTS)
def test_dialect_is_written_as_postgres_writes_it(postgres, table, name, forced):
    dialect = DIALECTS[name]
    options = [*g.dialect_options(dialect), *force_quote_option(FORCED[forced])]
    encoder = CsvEncoder(table.schema, dialect, FORCED[forced])
    g.assert_same(g.encoded(encoder, table), postgres.csv(options))


def test_pieces_of_a_large_batch_are_written_as_postgres_writes_them(postgres, table, monkeypatch):
    monkeypatch.setattr("dbt.adapters.mzs3.formats.write.format.PIECE_BYTES", 10_000)
    encoder = CsvEncoder(table.schema, CsvDialect())
    pieces = [encoder.encode(rows) for rows in in_pieces(table)]
    assert len(pieces) > 100
    text = b"".join(line.as_buffer().to_pybytes() for piece in pieces for line in piece)
    g.assert_same(text, postgres.csv())
