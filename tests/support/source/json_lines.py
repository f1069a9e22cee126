"""Objects of JSON lines: reading one in chunks of any size, and lines that are hard to read."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import strategies as st

from dbt.adapters.mzs3.formats.read import jsonl, text
from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.formats.read.format import Reading, Records, Reject
from dbt.adapters.mzs3.formats.read.jsonl import JsonLinesFormat
from support.s3.stored_objects import is_no_utf_16, stored

TYPES = (
    *("string", "boolean", "bigint", "double", "float", "decimal(9,2)", "date"),
    *("decimal(38,18)", "decimal(38,2)"),
)
"""Of the keys `k0`, `k1` and so on."""

_SCALARS = [
    *("null", "true", "false", "0", "-0", "7", "1.50", "1e2", "1E-2", "1e400", "1e-400", "1e-50"),
    *("123456789012345678901234567890", "0.1000000000000000055511151231257827", "12345678.90"),
    *("9223372036854775807", "9223372036854775808", "3.4e39", f"0.{'0' * 400}1", "-1.005"),
    *("400000000000000000000", "4e20", "4e18", "9e75", "4e57", "1e-18", "-1e-19", '"4\\u006520"'),
    *(f"4{'0' * zeros}" for zeros in (18, 19, 20, 35, 36, 37, 38, 57, 58, 74, 75, 76)),
    *("9" * 36, f"{'9' * 36}.99", f"{'9' * 20}.{'9' * 18}", f"0.{'1' * 38}", f"1.{'0' * 60}"),
    *('"4e20"', '"4E57"', '"1e-2147483600"', "1e-2147483600", '"1\\u0065-2147483600"'),
    *("NaN", "Infinity", "-Inf", "01", "+1", ".5", "1.", "0x1", "nul", "", " 5 "),
    *('"a"', '""', '"7"', '" 1.5 "', '"true"', '"NaN"', '"2024-02-29"', '"2023-02-29"'),
    *('"1e-400"', '"\\u0000"', '"\\u00e9"', '"\\ud83d\\ude00"', '"\\ud800"', '"\\udc00"'),
    *('"."', '"+1"', '"1."', '".5"', '"-"', '"1e"', '"1_0"', '"0x1"', '"\u0661"', '"1e5"'),
    *('"é"', '"\\"}"', '"\\\\"', '"}\\n{"', '"\t"', '"\\x"', '"', '":null"', '"\\":null"'),
    *('"\\\\ud800"', "{}", "[]", '{"k0":null}', '{"k2": 1, "k2": 2}', '["\\ud800", NaN]'),
    *("[1,]", '{"a":{"k1":1}}'),
]
_KEYS = [*(f'"k{number}"' for number in range(len(TYPES))), '"k\\u0030"', '"other"', '"":', "k0"]
SPACE = st.sampled_from(["", "", "", " ", "\t", "\r", "  "])


@st.composite
def _lines(draw: Any) -> str:
    """A record of the keys, or nearly one."""
    names = [f'"k{number}"' for number in range(len(TYPES))]
    good = ['"a"', "true", "7", "1.5", "0", "12.50", '"2024-02-29"', "1.5", "2.25"]
    values = dict(zip(names, good, strict=True))
    for name in draw(st.lists(st.sampled_from(names), max_size=2)):
        values[name] = draw(st.sampled_from(_SCALARS))
    pairs = list(values.items())
    for _ in range(draw(st.sampled_from([0, 0, 0, 1]))):
        place = draw(st.integers(0, len(pairs) - 1))
        pairs[place] = (draw(st.sampled_from(_KEYS)), draw(st.sampled_from(_SCALARS)))
    if draw(st.booleans()):
        pairs.append(('"extra"', draw(st.sampled_from(_SCALARS))))
    space = draw(SPACE)
    inside = f",{space}".join(f"{name}:{space}{value}" for name, value in pairs)
    return f"{space}{{{inside}{space}}}{space}"


HARD_OBJECTS = (
    st.lists(
        st.one_of(
            _lines().map(str.encode),
            st.sampled_from(
                [
                    *(b"", b" ", b"\r", b"{}", b"[]", b"5", b"{", b"}", b"{}}", b"\xff", b"\0"),
                    *(b'{"k0":"\xff"}', b"\xef\xbb\xbf", b'{"k0":"a"}{"k0":"b"}'),
                    *(b'{"k0":"a"}\0}', b'{"k0":'),
                ]
            ),
        ),
        max_size=6,
    )
    .map(b"\n".join)
    .filter(is_no_utf_16)
)
"""Objects with records of the `TYPES`, most of them good, and lines that are not."""


def columns(*types: str) -> tuple[Column, ...]:
    return tuple(Column(f"c{number}", kind) for number, kind in enumerate(types))


def keys(types: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"k{number}" for number in range(len(types)))


def read_records(
    data: bytes, types: Sequence[str] = TYPES, block_bytes: int = 1 << 22, **reading: Any
) -> tuple[dict[int, tuple], dict[int, Reject]]:
    """The good records of an object and its rejects, by number from 1."""
    good: dict[int, tuple] = {}
    bad: dict[int, Reject] = {}
    done = 0
    for records in records_of(data, types, block_bytes, **reading):
        rows = list(zip(*(c.to_pylist() for c in records.batch.columns), strict=True))
        numbers = range(records.count)
        if records.numbers is not None:
            numbers = records.numbers.to_pylist()
        good |= {done + n + 1: row for n, row in zip(numbers, rows, strict=True)}
        bad |= {done + reject.number + 1: reject for reject in records.rejects}
        done += records.count
    assert sorted([*good, *bad]) == list(range(1, done + 1))
    return good, bad


def records_of(
    data: bytes, types: Sequence[str], block_bytes: int, **reading: Any
) -> Iterator[Records]:
    """The records of an object as it is decoded, in chunks of about that size."""
    form = JsonLinesFormat("none", Reading(**{"on_bad_row": "reject", **reading}))
    decoder = form.decoder(keys(types), columns(*types))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "BLOCK_BYTES", block_bytes)
        patch.setattr(jsonl, "PART_BYTES", max(1, block_bytes // 3))
        yield from decoder(stored(data))


def as_bits(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows, floats as their bits, so that NaN equals itself and -0 differs from 0."""
    return [tuple(repr(v) if isinstance(v, float) else v for v in row) for row in rows]
