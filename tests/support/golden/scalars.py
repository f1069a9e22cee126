"""Values of each scalar type, and a check that PostgreSQL writes them so too."""

import pyarrow as pa

from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.write.csv.format import CsvEncoder
from dbt.adapters.mzs3.formats.write.format import PLAIN
from support.golden import postgres as g
from support.golden import values as v

DECIMALS = [(38, 18), (38, 0), (38, 38), (12, 2), (7, 7), (10, 6), (9, 7)]
SCALARS = {
    "boolean": (g.BOOLEAN, lambda random: random.random() < 0.5, [True, False]),
    "tinyint": (
        g.SqlType("smallint", 21, pa.int8(), g.SMALLINT.pack),
        v.integer(7),
        v.integer_extremes(8),
    ),
    "smallint": (g.SMALLINT, v.integer(15), v.integer_extremes(16)),
    "integer": (g.INTEGER, v.integer(31), v.integer_extremes(32)),
    "bigint": (g.BIGINT, v.integer(63), v.integer_extremes(64)),
    "double": (g.DOUBLE, v.double, v.DOUBLE_EXTREMES),
    "real": (g.REAL, v.single, v.SINGLE_EXTREMES),
    "text": (g.TEXT, v.text, v.AWKWARD_TEXTS),
    "bytea": (g.BYTEA, v.binary, [b"", b"\x00", b'\xff\\,"']),
    "date": (g.DATE, v.date, v.DATE_EXTREMES),
    "time": (g.TIME, v.time, [0, 1000, v.DAY * 1000 - 1000]),
    "timestamp": (g.TIMESTAMP, v.timestamp, v.TIMESTAMP_EXTREMES),
    "timestamptz": (g.TIMESTAMPTZ, v.timestamp, v.TIMESTAMP_EXTREMES),
} | {
    f"decimal({precision},{scale})": (
        g.decimal_type(precision, scale),
        v.decimal(precision, scale),
        v.decimal_extremes(precision, scale),
    )
    for precision, scale in DECIMALS
}


def check(postgres, kind, values, logical_type=PLAIN):
    """The values alone in a table, where a NULL is an empty line, and beside another column."""
    column = g.arrow_array(kind, values)
    other = pa.array(range(len(values)), pa.int32())
    alone = pa.record_batch([column], names=["v"])
    postgres.load(["v"], [kind], [(value,) for value in values])
    encoder = CsvEncoder(alone.schema, CsvDialect(), logical_types=(logical_type,))
    g.assert_same(g.encoded(encoder, alone), postgres.csv())
    beside = pa.record_batch([column, other], names=["v", "n"])
    rows = [(value, number) for number, value in enumerate(values)]
    postgres.load(["v", "n"], [kind, g.INTEGER], rows)
    encoder = CsvEncoder(beside.schema, CsvDialect(), logical_types=(logical_type, PLAIN))
    g.assert_same(g.encoded(encoder, beside), postgres.csv())
