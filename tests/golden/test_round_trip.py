"""PostgreSQL reads our bytes back as the table they were made of."""

import math
from random import Random

import pyarrow as pa
import pytest
from support.golden import postgres as g
from support.golden import values as v
from support.golden.dialects import COLUMNS, DIALECTS

from dbt.adapters.mzs3.formats.write.csv.format import CsvEncoder

pytestmark = pytest.mark.postgres

# Written the same by PostgreSQL, which then takes the delimiter for an escape when it reads.
ONE_WAY = {"escape is the delimiter"}


def one_nan(values):
    """CSV does not tell the many NaNs of IEEE 754 apart, PostgreSQL's binary form does."""
    return [
        math.nan if isinstance(value, float) and math.isnan(value) else value for value in values
    ]


@pytest.fixture(scope="module")
def table(postgres):
    random = Random("round trip")
    columns = [one_nan(v.sample(random, make, [])) for _, make in COLUMNS.values()]
    kinds = [kind for kind, _ in COLUMNS.values()]
    postgres.load(list(COLUMNS), kinds, list(zip(*columns, strict=True)))
    arrays = [g.arrow_array(kind, values) for kind, values in zip(kinds, columns, strict=True)]
    ordinals = pa.array(range(len(columns[0])), pa.int32())
    return pa.record_batch([ordinals, *arrays], names=["ordinal", *COLUMNS])


@pytest.mark.parametrize("name", sorted(DIALECTS.keys() - ONE_WAY))
def test_postgres_reads_the_table_back(postgres, table, name):
    text = g.encoded(CsvEncoder(table.schema, DIALECTS[name]), table)
    assert postgres.read_back(text, DIALECTS[name]) == postgres.binary("t")


def test_postgres_reads_a_single_column_back(postgres):
    words = [None, "", "x", " ", "\n", "\\.", *v.AWKWARD_TEXTS, None]
    postgres.load(["v"], [g.TEXT], [(word,) for word in words])
    batch = pa.record_batch([pa.array(words)], names=["v"])
    text = g.encoded(CsvEncoder(batch.schema, DIALECTS["default"]), batch)
    assert postgres.read_back(text, DIALECTS["default"], "v") == postgres.binary("t")
