"""Which names are one to Spark; that Spark agrees is tested in functional/test_names_in_spark."""

import pytest

from dbt.adapters.mzs3.names import folded, namesakes

ONE = [
    ("id", "ID"),
    ("\u0131d", "id"),
    ("\u0130d", "id"),
    ("\u0130d", "\u0131D"),
    ("\u017fum", "sum"),
    ("\u03c2", "\u03c3"),
    ("\u03c2", "\u03a3"),
    ("\u212a", "k"),
    ("\u1e9e", "\u00df"),
    ("\u00b5", "\u03bc"),
    ("\U00010400", "\U00010428"),
]
TWO = [
    ("\u00df", "ss"),
    ("\ufb05", "\ufb06"),
    ("\u0390", "\u1fd3"),
    ("i\u0307d", "id"),
    ("id", "id "),
    ("e\u0301", "\u00e9"),
]


@pytest.mark.parametrize(("one", "other"), ONE)
def test_names_that_are_one_to_spark(one, other):
    assert folded(one) == folded(other)
    assert namesakes([one, "x", other]) == [(0, 2)]


@pytest.mark.parametrize(("one", "other"), TWO)
def test_names_that_are_two_to_spark(one, other):
    assert folded(one) != folded(other)
    assert namesakes([one, other]) == []


def test_what_makes_tables_takes_a_dot_above_for_part_of_the_letter():
    assert namesakes(["\u0130d", "i\u0307d"]) == [(0, 1)]
    # Each is one with the first, and so it is the first that has to go.
    assert namesakes(["\u0130d", "i\u0307d", "id"]) == [(0, 1), (0, 2)]


def test_of_several_namesakes_each_is_told_with_the_first():
    assert namesakes(["a", "b", "A", "", "B", "a", ""]) == [(0, 2), (1, 4), (0, 5), (3, 6)]
