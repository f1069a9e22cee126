"""A shard's state stays one whatever happens to it, and is the same after JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.shard.states import batch, column
from support.shard.values import types

from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.shard.state.state import (
    Retired,
    ShardState,
    from_document,
    new_shard,
    to_document,
)
from dbt.adapters.mzs3.shard.types import Column

A, B = column(0, "a"), column(1, "b", default=b"\xff\x00")


def shard() -> ShardState:
    return new_shard([A]).appended(batch(0, 10, "one")).appended(batch(10, 20, "two"))


def test_a_new_shard_has_nothing() -> None:
    state = new_shard([A, B])
    assert (state.upper, state.since, state.next_tag, state.batches) == (0, 0, 2, ())


def test_batches_follow_one_another() -> None:
    assert shard().upper == 20
    with pytest.raises(ShardError, match=r"written up to 19 .* in the meantime"):
        shard().appended(batch(10, 30, "three"))


def test_times_without_changes_take_no_room() -> None:
    state = shard().appended(batch(20, 30)).appended(batch(30, 40))
    assert (len(state.batches), state.upper) == (3, 40)


@pytest.mark.parametrize(
    ("moment", "names"), [(9, ["one"]), (10, ["one"]), (18, ["one"]), (19, ["one", "two"])]
)
def test_batches_until_a_time(moment: int, names: list[str]) -> None:
    found = shard().batches_until(moment)
    assert [file.name for one in found for file in one.files] == names


def test_a_time_that_is_not_reached_can_not_be_read() -> None:
    with pytest.raises(ShardError, match=r"written up to 19 \(1970.*; as of 20 \("):
        shard().batches_until(20)


def test_there_is_nothing_to_read_before_the_first_batch() -> None:
    with pytest.raises(ShardError, match=r"written since 9 \(1970.*nothing to read as of 8 \("):
        shard().batches_until(8)
    # When the first run was is not known where it had no rows.
    assert new_shard([A]).appended(batch(0, 10)).batches_until(8) == ()


def test_columns_change_from_a_time_on() -> None:
    state = shard().with_columns([A, B], 25)
    assert state.next_tag == 2
    assert state.schema_at(24).columns == (A,)
    assert state.schema_at(25).columns == (A, B)


def test_columns_of_what_is_written_stay() -> None:
    state = shard().with_columns([A, B], 5)
    assert [schema.since for schema in state.schemas] == [0, 20]


def test_the_same_columns_are_no_new_schema() -> None:
    assert shard().with_columns([A], 20) == shard()


def test_tags_of_dropped_columns_stay_taken() -> None:
    state = new_shard([A, B]).appended(batch(0, 10, "one")).with_columns([A], 10)
    assert state.next_tag == 2


def test_compaction_takes_the_place_of_the_oldest() -> None:
    old = shard().batches
    state = shard().appended(batch(20, 30, "three")).compacted(old, batch(0, 20, "new"), now=0)
    assert [file.name for one in state.batches for file in one.files] == ["new", "three"]
    assert state.since == 19
    with pytest.raises(
        ShardError, match=r"can be read as of 19 \(1970[^)]*\) and later.*Give a later as_of"
    ):
        state.batches_until(18)
    assert [file.name for file in state.retired] == ["one", "two"]
    assert state.file_names == {"new", "three"}


def test_a_digest_lasts_until_rows_or_columns_change() -> None:
    state = replace(shard(), digest="3 1 2 3 4")
    same = [
        state.appended(batch(20, 30)),
        state.appended(batch(20, 30)).appended(batch(30, 40)),
        state.compacted(state.batches, batch(0, 20, "new"), now=0),
        state.with_columns([A], 30),
        state.after_sweep([]),
    ]
    other = [state.appended(batch(20, 30, "three")), state.with_columns([A, B], 30)]
    assert [one.digest for one in same] == ["3 1 2 3 4"] * 5
    assert [one.digest for one in other] == ["", ""]


def test_a_digest_is_in_the_document_once_it_is_known() -> None:
    assert b"digest" not in to_document(shard(), "w")
    known = replace(shard(), digest="3 1 2 3 4")
    assert from_document(to_document(known, "w")) == known


def test_what_was_removed_is_retired_no_more() -> None:
    state = shard().compacted(shard().batches, batch(0, 20, "new"), now=7)
    swept = state.after_sweep(["one"])
    assert (swept.retired, swept.sweeps) == ((Retired("two", 7),), 1)


def test_compaction_of_what_has_changed_is_an_error() -> None:
    old = (batch(0, 10, "other"), batch(10, 20, "two"))
    with pytest.raises(ShardError, match="another run has compacted"):
        shard().compacted(old, batch(0, 20, "new"), now=0)


def test_runs_without_changes_do_not_undo_a_compaction() -> None:
    old = shard().appended(batch(20, 30)).batches
    later = shard().appended(batch(20, 30)).with_columns([A, B], 35)
    later = later.appended(batch(30, 40, schema=1)).appended(batch(40, 50, "three", schema=1))
    state = later.compacted(old, batch(0, 30, "new"), now=0)
    assert state.batches == (
        batch(0, 30, "new"),
        batch(30, 40, schema=1),
        batch(40, 50, "three", schema=1),
    )
    assert (state.since, state.schema_at(29).columns) == (29, (A,))
    with pytest.raises(ShardError, match="another run has compacted"):
        shard().compacted(old, batch(0, 30, "new"), now=0)


def test_after_a_reset_there_is_nothing_to_read_until_a_run_has_written() -> None:
    state = replace(shard(), digest="3 1 2 3 4").after_reset(now=7)
    assert (state.is_unwritten, state.file_names, state.schema.columns) == (True, set(), ())
    assert (state.upper, state.next_tag, state.sweeps, state.digest) == (20, 1, 1, "")
    assert state.retired == (Retired("one", 7), Retired("two", 7))
    assert state.after_reset(now=8) == state
    assert from_document(to_document(state, "w")) == state
    for moment in (9, 19):
        with pytest.raises(ShardError, match=r"as of 20 .* or was another shard before a reset"):
            state.batches_until(moment)


@pytest.mark.parametrize("names", [("three",), ()], ids=["rows", "no rows"])
def test_the_first_batch_after_a_reset_is_the_first_time_to_read(names: tuple[str, ...]) -> None:
    state = shard().after_reset(7).with_columns([B], 30)
    state = state.appended(batch(20, 31, *names, schema=state.schema.id))
    assert (state.is_unwritten, state.since, state.upper) == (False, 30, 31)
    assert [file.name for one in state.batches_until(30) for file in one.files] == [*names]
    assert state.schema_at(30).columns == (B,)
    with pytest.raises(ShardError, match="as of 30 "):
        state.batches_until(29)
    later = state.appended(batch(31, 40, "four", schema=state.schema.id))
    assert (later.since, later.upper) == (30, 40)


def test_a_compaction_does_not_bring_back_what_was_before_a_reset() -> None:
    old = shard().batches
    reset = shard().after_reset(7)
    with pytest.raises(ShardError, match="another run has compacted"):
        reset.compacted(old, batch(0, 20, "new"), now=0)
    state = reset.with_columns([B], 30).appended(batch(20, 31, "three", schema=2))
    merged = state.compacted(state.batches, batch(0, 31, "new", schema=2), 30)
    assert (merged.file_names, merged.since) == ({"new"}, 30)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ([column(0, "x"), column(1, "X")], "several columns named x"),
        ([column(0, "x"), column(0, "y")], "several columns of one tag"),
    ],
)
def test_two_columns_of_one_name_or_tag_are_no_schema(columns: list[Column], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        new_shard(columns)


def test_compaction_keeps_the_schemas_that_readers_need() -> None:
    state = shard().with_columns([A, B], 20).appended(batch(20, 30, "three", schema=1))
    state = state.with_columns([B], 30).appended(batch(30, 40, "four", schema=2))
    first = state.compacted(state.batches[:3], batch(0, 30, "new", schema=1), 29)
    assert [schema.id for schema in first.schemas] == [1, 2]
    assert first.schema_at(29).columns == (A, B)


@pytest.mark.parametrize(
    "change",
    [
        {"schemas": ()},
        {"next_tag": 0},
        {"since": 21},
        {"batches": (batch(5, 20, "one"),)},
        {"batches": (batch(0, 10), batch(5, 20))},
        {"batches": (batch(0, 10, schema=7),)},
    ],
)
def test_a_state_that_is_none_can_not_be_made(change: dict[str, object]) -> None:
    state = shard()
    fields = {
        "schemas": state.schemas,
        "next_tag": state.next_tag,
        "batches": state.batches,
        "since": state.since,
    }
    with pytest.raises(ValueError):
        ShardState(**(fields | change))


@st.composite
def states(draw: st.DrawFn) -> ShardState:
    kinds = draw(st.lists(types, min_size=1, max_size=3))
    columns = [
        Column(
            tag,
            f"{tag}{draw(st.text(max_size=5))}",
            kind,
            draw(st.text(max_size=9)),
            draw(st.binary()),
        )
        for tag, kind in enumerate(kinds)
    ]
    state = new_shard(columns)
    for number in range(draw(st.integers(0, 3))):
        state = state.appended(batch(state.upper, state.upper + 5, *"xy"[:number]))
    return state.with_columns(columns[:1], 100)


@examples(50)
@given(states())
def test_json_gives_the_state_back(state: ShardState) -> None:
    document = to_document(state, "me")
    assert from_document(document) == state
    assert to_document(from_document(document), "me") == document


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", "Expecting value"),
        (b"[]", "lacks"),
        (b"{}", "lacks 'format'"),
        (b'{"format": 2}', "format 2"),
    ],
)
def test_what_is_no_state_says_so(data: bytes, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        from_document(data)


def test_the_document_can_be_read_by_people() -> None:
    found = json.loads(to_document(shard(), "me"))
    assert found["upper"] == 20
    assert found["batches"][0]["files"] == [
        {"etag": '"one"', "name": "one", "rows": 5, "size": 100}
    ]
