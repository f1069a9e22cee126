"""Ranges of one object: the records that they read are the object's, whatever is in quotes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3.formats.read.chunks import START, end_of_records
from dbt.adapters.mzs3.source.executor.ranges import Ends, RangePlan, Survey, plan_ranges

QUOTE = b'"'
FIELDS = st.one_of(
    st.text("ab1", max_size=4),
    st.text('a",\n\r', max_size=6).map(lambda text: '"' + text.replace('"', '""') + '"'),
)
RECORDS = st.lists(st.lists(FIELDS, min_size=1, max_size=3).map(",".join), max_size=12)
ENDS = st.sampled_from(["\n", "\r\n"])


def surveyed(data: bytes, size: int, block: int) -> list[Survey]:
    """The surveys of ranges of so many bytes, each read in blocks."""
    found = []
    for start in range(0, len(data), size):
        survey = Survey()
        for at in range(start, min(start + size, len(data)), block):
            piece = data[at : min(at + block, start + size)]
            survey = survey.extended(piece, QUOTE)
        found.append(survey)
    return found


def records_of(data: bytes) -> list[bytes]:
    """Records one by one, by counting quotes."""
    found, held = [], b""
    *lines, rest = data.split(b"\n")
    for line in lines:
        held += line + b"\n"
        if held.count(QUOTE) % 2 == 0:
            found.append(held)
            held = b""
    return [*found, held + rest] if held + rest else found


@given(RECORDS, ENDS, st.booleans(), st.integers(1, 40), st.integers(1, 40))
def test_every_record_is_read_by_one_range(
    records: list[str], end: str, ends_in_newline: bool, size: int, block: int
) -> None:
    data = end.join(records).encode() + (end.encode() if ends_in_newline else b"")
    plans = plan_ranges(surveyed(data, size, block), START)
    assert b"".join(data[plan.start : plan.end] for plan in plans) == data
    expected = records_of(data)
    read: list[bytes] = []
    for plan in plans:
        own = data[plan.start : plan.end]
        if own:
            assert plan.record == len(read)
            assert plan.line == data.count(b"\n", 0, plan.start)
        read += records_of(own)
    assert read == expected


@given(RECORDS, st.integers(1, 40))
def test_a_range_begins_at_its_first_record_and_reads_past_its_end(
    records: list[str], size: int
) -> None:
    data = "\n".join([*records, ""]).encode()
    for index, plan in enumerate(plan_ranges(surveyed(data, size, size), START)):
        first, last = index * size, min((index + 1) * size, len(data))
        assert first <= plan.start <= plan.range_end == last
        if plan.start < plan.end:
            assert plan.end >= last
            assert end_of_records(data[plan.start : plan.end], QUOTE) == plan.end - plan.start


def test_the_survey_of_a_range_counts_for_both_cases() -> None:
    survey = Survey().extended(b'b\nc"\n', QUOTE).extended(b'"\nd,"', QUOTE)
    assert (survey.size, survey.quotes, survey.newlines) == (10, 3, 3)
    assert survey.outside == Ends(count=2, first=2, first_line=1)
    assert survey.inside == Ends(count=1, first=5, first_line=2)


def test_a_record_longer_than_ranges_belongs_to_the_one_it_begins_in() -> None:
    data = b'1,"' + b"\n" * 20 + b'"\n2,\n'
    assert plan_ranges(surveyed(data, 8, 8), START) == [
        RangePlan(range_start=0, range_end=8, start=0, end=25, line=0, record=0, count=1),
        RangePlan(range_start=8, range_end=16, start=16, end=16),
        RangePlan(range_start=16, range_end=24, start=24, end=24),
        RangePlan(range_start=24, range_end=28, start=25, end=28, line=21, record=1),
    ]


def test_no_bytes_have_no_ranges() -> None:
    assert plan_ranges([], START) == []
