"""Which values of a column are bad is what trying each by itself says."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3.formats.read import convert as conversions
from dbt.adapters.mzs3.formats.read.convert import convert, convert_good

TYPES = [
    "string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(5,2)",
    "decimal(38,38)", "decimal(3,0)", "date", "timestamp", "timestamp_ntz", "binary",
]  # fmt: skip
LIKELY = [
    "", " ", "x", "t", "No", "0", "-0", "+1", "127", "128", "99999", "-32769", "999999999",
    "9999999999", "0000000000000000000001", "9223372036854775808", "1.5", "-.5", "1.", "0.125",
    "123.45", "1234.5", "1e3", "1e400", "NaN", "Infinity", "2020-02-28", "2020-02-30",
    "0000-01-01", "2020-02-29 12:00", "2020-02-28 12:00:00.123456+01", "2020-13-01", " 7 ",
    "2020-02-28T23:59:60", "2020-01-01 00:00:00+14", "44 BC", "0044-03-15 BC", "\\x00ff", "\\x0",
    "99999999999999999999999999999999999999",
]  # fmt: skip
texts = st.lists(
    st.one_of(
        st.none(),
        st.sampled_from(LIKELY),
        st.text("0123456789.-+e :TZ", max_size=12),
        st.integers(-(10**20), 10**20).map(str),
        st.decimals(allow_nan=False, allow_infinity=False).map(str),
        st.datetimes().map(str),
        st.dates().map(str),
    ),
    max_size=30,
)


def is_good(value: str | None, data_type: str) -> bool:
    try:
        convert(pa.array([value], pa.string()), data_type)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("data_type", TYPES)
@given(values=texts)
def test_each_value_is_as_good_as_it_is_alone(data_type, values):
    text = pa.array(values, pa.string())
    good = [is_good(value, data_type) for value in values]
    converted, is_bad = convert_good(text, data_type)
    if is_bad is None:
        assert all(good)
    else:
        assert is_bad.to_pylist() == [not one for one in good]
    kept = [value if one else None for value, one in zip(values, good, strict=True)]
    # As text: NaN is not equal to itself.
    assert str(converted) == str(convert(pa.array(kept, pa.string()), data_type))


@pytest.mark.parametrize("data_type", [kind for kind in TYPES if kind != "string"])
def test_what_the_form_alone_tells_is_good(data_type):
    form = conversions.sure_pattern(data_type)

    @given(st.from_regex(form.replace("$", r"\Z"), alphabet=ASCII))
    def check(value):
        assert is_good(value, data_type)

    check()


ASCII = st.characters(codec="ascii")


@pytest.mark.parametrize("data_type", [kind for kind in TYPES if kind != "string"])
@given(
    value=st.one_of(
        st.sampled_from(LIKELY), st.text("0123456789.-+eEINFnaf :TZBC\\x\n", max_size=9)
    )
)
def test_what_converts_is_possible_by_its_form(data_type, value):
    if is_good(value, data_type):
        form = conversions.possible_pattern(data_type)
        assert pc.all(pc.match_substring_regex(pa.array([value]), form)).as_py()


def test_few_conversions_find_few_bad_values(monkeypatch):
    calls = []

    def counted(text, data_type):
        calls.append(len(text))
        return convert(text, data_type)

    monkeypatch.setattr(conversions, "convert", counted)
    values = [str(n) if n % 100 else f"x{n}" for n in range(10_000)]
    values[::1000] = [str(10**10 + n) for n in range(10)]
    _, is_bad = convert_good(pa.array(values), "int")
    assert sum(is_bad.to_pylist()) == 100
    # The whole column twice, and by halving the 10 of which the form does not tell.
    assert len(calls) < 25
    assert sum(calls) < 10_000 * 2 + 10 * 5
