"""The pieces of a key space hold every key once, wherever it is cut."""

from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3.source.executor.listing import KeyRange, cut

KEYS = st.text(alphabet="ab/\x01~é\U0001f4a7", max_size=5)


@given(
    keys=st.sets(KEYS),
    marks=st.lists(KEYS),
    count=st.integers(min_value=1, max_value=9),
    after=st.none() | KEYS,
)
def test_every_key_is_in_one_piece_and_none_before_the_start(keys, marks, count, after):
    pieces = cut(marks, count, after)
    assert 1 <= len(pieces) <= count
    for key in keys | set(marks):
        wanted = after is None or key > after
        assert sum(piece.has(key) for piece in pieces) == wanted


@given(marks=st.sets(st.integers(10, 99), min_size=1), count=st.integers(1, 9))
def test_pieces_have_about_as_many_marks_each(marks, count):
    pieces = cut([str(mark) for mark in marks], count)
    sizes = [sum(piece.has(str(mark)) for mark in marks) for piece in pieces]
    assert len(pieces) == min(count, len(marks) + 1)
    assert max(sizes) - min(sizes) <= 1


def test_folders_are_kept_whole():
    assert cut(["2024/", "2025/", "2026/"], 2, after="2024/01/7.csv") == [
        KeyRange("2024/01/7.csv", "2025/"),
        KeyRange("2025/", None),
    ]


def test_keys_sort_by_their_bytes():
    # U+FF5E comes before the emoji in UTF-8, and after its first half in UTF-16.
    assert KeyRange("～", None).has("\U0001f4a7")
