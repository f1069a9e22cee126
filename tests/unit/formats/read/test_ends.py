"""At the ends of every Arrow type: a value is the same in its column, or refused, never wrapped.

What a value is, exact arithmetic says; pyarrow's casts are not asked. It begins with an array of
Arrow: how INT96 and Avro's numbers become one is tested with those formats.
"""

import math
from decimal import Context, Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from dbt.adapters.mzs3.formats.read.typed import can_be_read_as, convert_typed, own_type
from dbt.adapters.mzs3.types.table import arrow_type

DAY_NS = 86_400 * 10**9
UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
WANTED = (
    *("tinyint", "smallint", "int", "bigint", "float", "double", "date"),
    *("decimal(1,0)", "decimal(5,2)", "decimal(20,0)", "decimal(38,0)", "decimal(38,19)"),
    *("decimal(38,38)", "timestamp", "timestamp_ntz"),
)
BITS = (8, 16, 32, 64)
INTEGERS = {
    **{getattr(pa, f"int{bits}")(): (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in BITS},
    **{getattr(pa, f"uint{bits}")(): (0, 2**bits - 1) for bits in BITS},
}
DECIMALS = [
    *(pa.decimal128(*digits) for digits in ((5, 2), (19, 0), (38, 0), (38, 19), (38, 38))),
    *(pa.decimal256(*digits) for digits in ((38, 0), (38, 37))),
]
FLOATS = {pa.float16(): 16, pa.float32(): 32, pa.float64(): 64}
TIMES = {
    pa.date32(): (32, DAY_NS),
    pa.date64(): (64, 10**6),
    **{pa.timestamp(unit, tz=tz): (64, ns) for unit, ns in UNITS.items() for tz in (None, "UTC")},
}
# Where types of other widths and units end.
EDGES = sorted(
    {2**bits // per for bits in (7, 8, 15, 16, 31, 32, 63, 64) for per in (1, 10**3, 10**6)}
    | {0, 2**24, 2**53, 86_400_000, 2**31 * 86_400_000, *(10**n for n in (2, 3, 5, 18, 19))}
)


def numbers(least, most):
    """Integers between these, most of them near an end of something."""
    near = st.tuples(st.sampled_from(EDGES), st.sampled_from([1, -1]), st.integers(-2, 2))
    ends = st.one_of(near.map(lambda t: t[0] * t[1] + t[2]), st.sampled_from([least, most]))
    return ends.filter(lambda n: least <= n <= most) | st.integers(least, most)


def arrays(kind):
    """Some values of the type."""
    if kind in INTEGERS:
        values = numbers(*INTEGERS[kind])
    elif kind in FLOATS:
        values = st.floats(width=FLOATS[kind], allow_nan=False)
    elif kind in TIMES:
        bits = TIMES[kind][0]
        values = numbers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        stored = pa.int32() if bits == 32 else pa.int64()
        return st.lists(values, min_size=1, max_size=3).map(
            lambda found: pa.array(found, stored).view(kind)
        )
    else:
        wide = Context(prec=80)
        top = 10**kind.precision - 1
        values = numbers(-top, top).map(lambda n: Decimal(n).scaleb(-kind.scale, wide))
    return st.lists(values, min_size=1, max_size=3).map(lambda found: pa.array(found, kind))


def exactly(values):
    """Each value as a number: of a time, of nanoseconds from 1970 on."""
    kind = values.type
    if pa.types.is_temporal(kind):
        per = TIMES[kind][1]
        return [value.value * per for value in values]
    found = values.to_pylist()
    return [one if isinstance(one, float) and math.isinf(one) else Fraction(one) for one in found]


@pytest.mark.parametrize("kind", [*INTEGERS, *FLOATS, *DECIMALS, *TIMES], ids=str)
@examples(150)
@given(data=st.data())
def test_a_value_stays_the_same_or_is_refused(kind, data):
    values = data.draw(arrays(kind))
    own = own_type(kind)
    for wanted in WANTED:
        if not can_be_read_as(own, wanted):
            continue
        try:
            read = convert_typed(values, own, wanted)
        except ValueError:
            continue
        assert read.type == arrow_type(wanted)
        assert exactly(read) == exactly(values)


@pytest.mark.parametrize("kind", [*INTEGERS, *TIMES], ids=str)
@examples(150)
@given(data=st.data())
def test_what_a_column_can_hold_is_not_refused(kind, data):
    values = data.draw(arrays(kind))
    for wanted in WANTED:
        column = arrow_type(wanted)
        if not can_be_read_as(own_type(kind), wanted) or pa.types.is_floating(column):
            continue
        if all(map(_holds(column), exactly(values))):
            assert exactly(convert_typed(values, own_type(kind), wanted)) == exactly(values)


def _holds(column):
    if column in INTEGERS:
        least, most = INTEGERS[column]
        return lambda value: least <= value <= most
    if pa.types.is_decimal(column):
        return lambda value: abs(value) < 10 ** (column.precision - column.scale)
    bits, per = TIMES[column]
    return lambda value: value % per == 0 and -(2 ** (bits - 1)) <= value // per < 2 ** (bits - 1)
