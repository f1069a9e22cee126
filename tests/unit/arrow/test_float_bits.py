"""Floats by their bits, wherever they are."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dbt.adapters.mzs3.arrow.arrays import float_bits


@pytest.mark.parametrize("data_type", [pa.float32(), pa.float64()], ids=str)
def test_zeros_have_signs_and_nans_none(data_type: pa.DataType) -> None:
    values = pa.array([0.0, -0.0, math.nan, None, 1.5], data_type)
    first, second, nan, null, _ = float_bits(values).to_pylist()
    assert first == 0 != second
    assert null is None
    assert float_bits(pc.negate(values))[2].as_py() == nan
    assert float_bits(values.slice(1)).to_pylist() == float_bits(values).to_pylist()[1:]


@pytest.mark.parametrize(
    ("data_type", "one", "other"),
    [
        (pa.list_(pa.float64()), [[0.0], None, []], [[-0.0], None, []]),
        (pa.struct([("a", pa.float32())]), [{"a": 0.0}, None], [{"a": -0.0}, None]),
        (
            pa.list_(pa.struct([("a", pa.list_(pa.float64()))])),
            [[{"a": [0.0]}]],
            [[{"a": [-0.0]}]],
        ),
    ],
    ids=str,
)
def test_inside_of_others(data_type: pa.DataType, one: list[Any], other: list[Any]) -> None:
    first, second = pa.array(one, data_type), pa.array(other, data_type)
    assert first.equals(second)
    assert not float_bits(first).equals(float_bits(second))
    assert float_bits(first).equals(float_bits(pa.array(one, data_type)))
    assert float_bits(first).null_count == first.null_count


def test_what_has_no_floats_is_what_it_was() -> None:
    values = pa.array([[{"a": 1}], None])
    assert float_bits(values) is values
