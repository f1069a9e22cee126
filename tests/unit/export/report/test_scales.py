import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3.export.report.plots import BYTES, COUNT, SECONDS, bar_axis, line_axis

UNITS = [COUNT, BYTES, SECONDS]
VALUES = st.lists(st.floats(0, 1e15, allow_subnormal=False), max_size=30)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("axis", [line_axis, bar_axis])
def test_without_values_there_is_still_an_axis(axis, unit):
    found = axis([], unit)
    assert found.ticks[0] == 0 < found.top
    assert found.at(0) == 0


@pytest.mark.parametrize("unit", UNITS)
def test_steps_and_decades_ascend(unit):
    for values in (unit.steps, unit.decades):
        assert values == sorted(set(values))


@given(VALUES, st.sampled_from(UNITS))
def test_any_value_has_its_place_in_the_plot(values, unit):
    axis = line_axis(values, unit)
    places = [axis.at(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(0 <= place <= 1 for place in places)
    assert 1 <= len(axis.ticks) <= 6
    assert list(axis.ticks) == sorted(set(axis.ticks))
    assert all(0 <= axis.at(tick) <= 1 for tick in axis.ticks)


@given(VALUES, st.sampled_from(UNITS))
def test_bars_are_measured_from_zero(values, unit):
    axis = bar_axis(values, unit)
    assert not axis.is_log
    assert axis.ticks[0] == 0
    assert axis.ticks[-1] == axis.top


def test_an_outlier_makes_lines_logarithmic_and_keeps_zero_at_the_bottom():
    axis = line_axis([0, 10, 11, 12, 86_400], SECONDS)
    assert axis.is_log
    assert axis.ticks[0] == 0
    assert axis.at(0) == 0 < axis.at(10) < 0.5 < axis.at(86_400) <= 1


def test_a_logarithmic_axis_has_a_bottom_and_a_top_however_small_its_values():
    axis = line_axis([1, 0.03125, 0.03125], COUNT)
    assert (axis.is_log, axis.bottom, axis.top) == (True, 1, 10)
    assert 0 < axis.at(0.03125) <= axis.at(1) < 1


def test_without_an_outlier_lines_are_linear():
    axis = line_axis([20, 30, 41], SECONDS)
    assert not axis.is_log
    assert axis.ticks == (0, 15, 30, 45)


def test_bars_cut_an_outlier_and_not_the_rest():
    axis = bar_axis([100] * 20 + [10_000], COUNT)
    assert 100 < axis.top < 200


def test_sizes_have_ticks_in_units_of_1024():
    assert bar_axis([3_900], BYTES).ticks == (0, 1024, 2048, 3072, 4096)
