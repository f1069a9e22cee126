"""The keys that say how strictly objects are read."""

import pytest
from support.source.fields import parse

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.formats.read.format import Reading


def problems(**external):
    with pytest.raises(ConfigError) as raised:
        parse(external)
    return list(raised.value.problems)


def test_the_defaults():
    assert parse().reading == Reading()
    assert parse(header=False, column_count=1).reading == Reading()
    assert Reading() == Reading("exact", "fail", "fail", None, "utf-8")


def test_everything_that_can_be_said():
    reading = parse(
        header_match="subset",
        on_header_mismatch="skip_object",
        on_bad_row="reject",
        max_rejects=0,
        encoding="Windows-1252",
    ).reading
    assert reading == Reading("subset", "skip_object", "reject", 0, "cp1252")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"header_match": "some"},
         "external.header_match must be one of exact, reorder, subset, not 'some'"),
        ({"on_header_mismatch": True},
         "external.on_header_mismatch must be one of fail, skip_object, not True"),
        ({"on_bad_row": "skip"}, "external.on_bad_row must be one of fail, reject, not 'skip'"),
        ({"on_bad_row": "reject", "max_rejects": -1},
         "external.max_rejects must be a whole number, 0 or more, not -1"),
        ({"on_bad_row": "reject", "max_rejects": True},
         "external.max_rejects must be a whole number, 0 or more, not True"),
        ({"on_bad_row": "reject", "max_rejects": 1.5},
         "external.max_rejects must be a whole number, 0 or more, not 1.5"),
        ({"max_rejects": 5}, "external.max_rejects needs `on_bad_row: reject` beside it"),
        ({"encoding": "utf-7"},
         "external.encoding 'utf-7' is not an encoding that a source can have: UTF-8, UTF-16, or "
         "one of Python's codecs that has ASCII's characters at ASCII's bytes, such as latin-1, "
         "cp1252 or shift_jis"),
    ],
)  # fmt: skip
def test_one_problem(given, says):
    assert problems(**given) == [says]


def test_objects_without_a_header_have_none_to_match():
    assert problems(
        header=False, column_count=1, header_match="subset", on_header_mismatch="skip_object"
    ) == [
        "external.header_match: subset needs objects with a header, but external.header is false",
        "external.on_header_mismatch: skip_object needs objects with a header, but "
        "external.header is false",
    ]


def test_all_problems_are_told_at_once():
    found = problems(
        header_match=1, on_header_mismatch=2, on_bad_row=3, max_rejects="x", encoding=4
    )
    assert len(found) == 5
