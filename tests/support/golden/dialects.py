"""Columns of every kind, and the dialects that they are written in."""

from dbt.adapters.mzs3.formats.dialect import CsvDialect
from support.golden import postgres as g
from support.golden import values as v

COLUMNS = {
    "word": (g.TEXT, v.text),
    "number": (g.BIGINT, v.integer(20)),
    "flag": (g.BOOLEAN, lambda random: random.random() < 0.5),
    "ratio": (g.DOUBLE, v.double),
    "moment": (g.TIMESTAMPTZ, v.timestamp),
    "price": (g.decimal_type(12, 2), v.decimal(12, 2)),
    "raw": (g.BYTEA, v.binary),
    "words": (g.array_of(g.TEXT), v.array(v.text)),
    "day": (g.DATE, v.date),
    "last": (g.TEXT, v.text),
}
DIALECTS = {
    "default": CsvDialect(),
    "pipe": CsvDialect(delimiter="|"),
    "tab": CsvDialect(delimiter="\t"),
    "semicolon, single quote": CsvDialect(delimiter=";", quote="'", escape="'"),
    "backslash escape": CsvDialect(escape="\\"),
    "escape in the values": CsvDialect(escape="a"),
    "escape is the delimiter": CsvDialect(escape=","),
    "quote in numbers": CsvDialect(quote="1", escape="1"),
    "delimiter in numbers": CsvDialect(delimiter="-"),
    "delimiter in dates": CsvDialect(delimiter=":"),
    "delimiter in exponents": CsvDialect(delimiter="+"),
    "delimiter in booleans": CsvDialect(delimiter="t"),
    "delimiter in binaries": CsvDialect(delimiter="\\"),
    "null is a word": CsvDialect(null="NULL"),
    "null is a backslash N": CsvDialect(null="\\N"),
    "null is a boolean": CsvDialect(null="t"),
    "null is a number": CsvDialect(null="-1"),
    "null is not ASCII": CsvDialect(null="日本"),
    "null is the end of data": CsvDialect(null="\\."),
}
