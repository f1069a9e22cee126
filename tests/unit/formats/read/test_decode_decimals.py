"""Decimals: exactly the number that the text says, or an error; against Python's decimal."""

from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.examples import examples
from support.source.fields import decoder, problem_of, read

from dbt.adapters.mzs3.formats.read.chunks import Chunk
from dbt.adapters.mzs3.formats.read.object_error import ObjectError

KINDS = [(12, 2), (4, 2), (18, 0), (38, 0), (38, 18), (38, 19), (38, 20), (38, 37), (38, 38)]
WIDE = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def expected(text, precision, scale):
    """The number if the decimal holds it exactly, else None."""
    number = Decimal(text)
    if number == 0:
        return Decimal(0)
    sign, digits, exponent = number.as_tuple()
    whole = "".join(map(str, digits)).rstrip("0")
    exponent += len(digits) - len(whole)
    if exponent < -scale or len(whole) + exponent > precision - scale:
        return None
    return Decimal((sign, tuple(map(int, whole)), exponent))


def found(decode, text):
    try:
        (value,) = decode(Chunk(f"{text}\n".encode(), 0, 1)).column(0).to_pylist()
    except ObjectError as problem:
        assert problem.line == 1
        return None
    return value


digits = st.one_of(
    st.text("0123456789", max_size=6),
    st.text("0123456789", min_size=15, max_size=45),
    st.text("0123456789", min_size=70, max_size=100),
    # Multiples of what pyarrow wraps at, and what is near them.
    st.tuples(
        st.sampled_from([2**127, 2**128, 2**255, 2**256]), st.integers(1, 9), st.integers(-3, 3)
    ).map(lambda t: str(t[0] * t[1] + t[2])),
)
zeros = st.sampled_from(["", "", "0", "0" * 30, "0" * 50, "0" * 90])
exponents = st.one_of(
    st.just(""),
    st.tuples(
        st.sampled_from("eE"),
        st.sampled_from(["", "+", "-", "-00"]),
        st.one_of(st.integers(0, 45), st.integers(0, 400), st.just(99999999999)),
    ).map(lambda t: f"{t[0]}{t[1]}{t[2]}"),
)


@st.composite
def numbers(draw):
    whole, fraction = draw(zeros) + draw(digits), draw(digits) + draw(zeros)
    point = draw(st.sampled_from(["", "."]))
    text = whole + (point + fraction if point else "")
    if not any(char.isdigit() for char in text):
        text += "7"
    return draw(st.sampled_from(["", "-", "+"])) + text + draw(exponents)


@pytest.mark.parametrize(("precision", "scale"), KINDS)
@examples(150)
@given(numbers())
@example("400000000000000000000")
@example("9" * 39)
@example("34028236692093846346337460743176821145.61")
@example("4e20")
@example("4e38")
@example("1e400")
@example("9e76")
@example("0e400")
@example("1.00" + "0" * 80)
@example("0." + "0" * 80 + "1")
def test_a_decimal_is_exact_or_an_error(precision, scale, text):
    decode = decoder(f"decimal({precision},{scale})")
    assert found(decode, text) == expected(text, precision, scale)


@pytest.mark.parametrize(("precision", "scale"), KINDS)
@given(st.data())
def test_the_decimals_of_a_column_do_not_affect_each_other(precision, scale, data):
    top = 10**precision - 1
    held = st.integers(-top, top).map(lambda n: f"{Decimal(n).scaleb(-scale, WIDE):f}")
    fits = numbers().map(lambda text: "" if expected(text, precision, scale) is None else text)
    column = data.draw(st.lists(held | fits, min_size=1, max_size=12))
    rows = read("".join(f"{x}\n" for x in column).encode(), f"decimal({precision},{scale})")
    assert [x for (x,) in rows] == [
        expected(text, precision, scale) if text else None for text in column
    ]


@pytest.mark.parametrize("scale", [0, 18, 38])
def test_a_decimal_out_of_range_is_told_by_its_record(scale):
    good = "0.1" if scale else "1"
    line, byte, problem = problem_of(f"{good}\n{'9' * 39}\n".encode(), f"decimal(38,{scale})")
    assert (line, byte) == (2, len(good) + 1)
    assert problem == f"column c1: '{'9' * 39}' is not a decimal(38,{scale})"


# PostgreSQL would round 12.345 and 99.995; what the object says would be lost.
@pytest.mark.parametrize(
    "text",
    ["123", "12.345", "99.995", "1e2", "1e-3", "NaN", "Infinity", "1,5", "", ".", "-", "+", "e1",
     "1e", "0x10", "1_0", "1 0", "--1", "1e1.0", "\u0661", "1e99999999999999999999"],
)  # fmt: skip
def test_what_does_not_fit_a_decimal(text):
    assert problem_of(f'1.50\n"{text}"\n'.encode(), "decimal(4,2)")[:2] == (2, 5)


@pytest.mark.parametrize(
    ("text", "value"),
    [("12.3", "12.30"), ("-99.99", "-99.99"), ("1.500", "1.50"), ("1", "1.00"), (".5", "0.50"),
     ("5.", "5.00"), ("+5", "5.00"), (" 5 ", "5.00"), ("1.2E+1", "12.00"), ("0e400", "0.00"),
     ("0" * 100 + "1", "1.00"), ("1." + "0" * 100, "1.00"), ('"7"', "7.00")],
)  # fmt: skip
def test_what_fits_a_decimal(text, value):
    assert str(read(f"{text}\n".encode(), "decimal(4,2)")[0][0]) == value
