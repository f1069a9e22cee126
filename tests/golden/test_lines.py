"""Headers and single-column tables, where PostgreSQL's rules have exceptions."""

import pyarrow as pa
import pytest
from psycopg import sql
from support.golden import postgres as g
from support.golden import values as v

from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.write.csv.format import CsvEncoder

pytestmark = pytest.mark.postgres

HEADERS = [
    ["id"],
    ["\\."],
    ["\\.", "id"],
    ["a,b", 'A"q', " lead", "é", "new\nline", "cr\rcr", "\\.", "a\\b", "t|t", "'"],
]
DIALECTS = [
    CsvDialect(),
    CsvDialect(escape="\\"),
    CsvDialect(delimiter="|", quote="'", escape="'"),
    CsvDialect(null="id"),
]
WORDS = [None, "", "\\.", "\\.x", "x", None, "NULL", "\\N", " ", "\n", *v.AWKWARD_TEXTS]


@pytest.mark.parametrize("names", HEADERS)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("forced", [frozenset(), "*"])
def test_header_is_written_as_postgres_writes_it(postgres, names, dialect, forced):
    postgres.load(names, [g.TEXT] * len(names), [])
    options = [*g.dialect_options(dialect), sql.SQL("header")]
    if forced:
        options.append(sql.SQL("force_quote *"))
    schema = pa.schema([(name, pa.string()) for name in names])
    g.assert_same(CsvEncoder(schema, dialect, forced).header(), postgres.csv(options))


@pytest.mark.parametrize("forced", [frozenset(), "*"])
@pytest.mark.parametrize("null", ["", "\\.", "NULL", "\\N", " "])
def test_single_column_is_written_as_postgres_writes_it(postgres, null, forced):
    dialect = CsvDialect(null=null)
    postgres.load(["v"], [g.TEXT], [(word,) for word in WORDS])
    options = [*g.dialect_options(dialect), *([sql.SQL("force_quote *")] if forced else [])]
    batch = pa.record_batch([pa.array(WORDS)], names=["v"])
    encoder = CsvEncoder(batch.schema, dialect, forced)
    g.assert_same(g.encoded(encoder, batch), postgres.csv(options))
