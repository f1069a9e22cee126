"""Intervals, JSON, records and what is nested in each other are written as PostgreSQL does."""

from random import Random

import pyarrow as pa
import pytest
from support.golden import postgres as g
from support.golden import values as v
from support.golden.scalars import SCALARS, check

from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.write.csv.format import CsvEncoder
from dbt.adapters.mzs3.formats.write.format import PLAIN, LogicalType

pytestmark = pytest.mark.postgres

INTERVAL, VARIANT = LogicalType("interval"), LogicalType("variant")
JSON_EXTREMES = ["null", '""', "{}", "[]", "-0.0", '{"a":[1.5,"x y",null]}', r'"\"\\\n"']


def listed(logical_type):
    return LogicalType("list", (logical_type,))


def pair(postgres):
    """A record of a number and a text, its shape, and how its values are made."""
    kind = postgres.composite("pair", {"number": g.INTEGER, "word": g.TEXT})
    make = v.record(number=v.integer(31), word=v.text)
    return kind, LogicalType("struct", (PLAIN, PLAIN)), make


def deep(postgres):
    """A record that holds records, and lists of these."""
    inner, inner_type, make_inner = pair(postgres)
    fields = {
        "inner": (inner, inner_type, make_inner),
        "words": (g.array_of(g.TEXT), listed(PLAIN), v.array(v.text)),
        "span": (g.INTERVAL, INTERVAL, v.interval),
        "spans": (g.array_of(g.INTERVAL), listed(INTERVAL), v.array(v.interval)),
        "document": (g.JSON, VARIANT, v.json_text),
        "inners": (g.array_of(inner), listed(inner_type), v.array(make_inner)),
    }
    kind = postgres.composite("deep", {name: kind for name, (kind, _, _) in fields.items()})
    logical_type = LogicalType(
        "struct", tuple(logical_type for _, logical_type, _ in fields.values())
    )
    return kind, logical_type, v.record(**{name: make for name, (_, _, make) in fields.items()})


def test_interval_is_written_as_postgres_writes_it(postgres):
    values = v.sample(Random("interval"), v.interval, v.INTERVAL_EXTREMES)
    check(postgres, g.INTERVAL, values, INTERVAL)


def test_array_of_intervals_is_written_as_postgres_writes_it(postgres):
    values = v.sample(Random("intervals"), v.array(v.interval), [[], v.INTERVAL_EXTREMES])
    check(postgres, g.array_of(g.INTERVAL), values, listed(INTERVAL))


def test_json_is_written_as_postgres_writes_it(postgres):
    check(postgres, g.JSON, v.sample(Random("json"), v.json_text, JSON_EXTREMES), VARIANT)


def test_array_of_json_is_written_as_postgres_writes_it(postgres):
    values = v.sample(Random("jsons"), v.array(v.json_text), [[], JSON_EXTREMES])
    check(postgres, g.array_of(g.JSON), values, listed(VARIANT))


@pytest.mark.parametrize("name", SCALARS)
def test_record_of_one_field_is_written_as_postgres_writes_it(postgres, name):
    kind, make, extremes = SCALARS[name]
    record = postgres.composite("single", {"v": kind})
    records = [{"v": value} for value in extremes]
    check(postgres, record, v.sample(Random(name), v.record(v=make), records))


def test_record_of_all_types_is_written_as_postgres_writes_it(postgres):
    kinds = {f"f{i}": kind for i, (kind, _, _) in enumerate(SCALARS.values())}
    makes = {f"f{i}": make for i, (_, make, _) in enumerate(SCALARS.values())}
    record = postgres.composite("wide", kinds)
    check(postgres, record, v.sample(Random("wide"), v.record(**makes), [dict.fromkeys(kinds)]))


def test_array_of_records_is_written_as_postgres_writes_it(postgres):
    kind, logical_type, make = pair(postgres)
    values = v.sample(Random("pairs"), v.array(make), [[], [None]])
    check(postgres, g.array_of(kind), values, listed(logical_type))


def test_matrix_of_records_is_written_as_postgres_writes_it(postgres):
    kind, logical_type, make = pair(postgres)
    values = v.sample(Random("matrix"), v.matrix(make), [[[None]]])
    check(postgres, g.nested_array_of(kind), values, listed(listed(logical_type)))


def test_records_in_records_are_written_as_postgres_writes_them(postgres):
    kind, logical_type, make = deep(postgres)
    check(postgres, kind, v.sample(Random("deep"), make, []), logical_type)


def test_array_of_deep_records_is_written_as_postgres_writes_it(postgres):
    kind, logical_type, make = deep(postgres)
    check(
        postgres,
        g.array_of(kind),
        v.sample(Random("deeps"), v.array(make), []),
        listed(logical_type),
    )


def test_postgres_reads_nested_values_back(postgres):
    kind, logical_type, make = deep(postgres)
    values = v.sample(Random("back"), make, [])
    postgres.load(["v"], [kind], [(value,) for value in values])
    batch = pa.record_batch([g.arrow_array(kind, values)], names=["v"])
    text = g.encoded(CsvEncoder(batch.schema, CsvDialect(), logical_types=(logical_type,)), batch)
    assert postgres.read_back(text, CsvDialect(), "v") == postgres.binary("t")
