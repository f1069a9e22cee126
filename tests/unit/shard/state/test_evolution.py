"""What becomes of a shard's columns when a model's change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from pyspark.sql import types as T
from support.shard.states import column, given
from support.shard.values import list_of, map_of, record_of

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.shard.codec.decode import values_of_datums
from dbt.adapters.mzs3.shard.codec.encode import datums
from dbt.adapters.mzs3.shard.state.columns import POLICIES, OnSchemaChange, ddl_of, evolved_columns
from dbt.adapters.mzs3.shard.types import UINT8, Column, Type, is_wider, range_of

NODE = "model.acme.orders"
BY_DDL: dict[str, T.DataType] = {}


def spark(data_type: T.DataType) -> str:
    """The type in DDL, which `fromDDL` reads back here without Spark."""
    BY_DDL[ddl_of(data_type)] = data_type
    return ddl_of(data_type)


@pytest.fixture(autouse=True, scope="module")
def without_spark() -> Iterator[None]:
    for data_type in (T.IntegerType(), T.LongType(), T.StringType()):
        spark(data_type)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(T.DataType, "fromDDL", BY_DDL.__getitem__)
        yield


INTEGER, BIGINT, TEXT = Type("integer"), Type("bigint"), Type("text")
INTERVAL = Type("interval")
AB = [column(0, "a"), column(1, "b")]


def result(
    new: list[Column],
    policy: OnSchemaChange = "append_new_columns",
    *,
    current: list = AB,
    next_tag: int = 2,
    renames: dict[str, str] | None = None,
    defaults: dict[str, bytes] | None = None,
) -> list[tuple[int, str, str]]:
    how: Any = {"renames": renames or {}, "defaults": defaults or {}}
    columns = evolved_columns(NODE, current, new, next_tag, policy=policy, **how)
    return [(found.tag, found.name, found.kind.name) for found in columns]


def problem(*how: object, **more: object) -> str:
    with pytest.raises(ConfigError) as caught:
        result(*how, **more)
    return str(caught.value)


SAME = [(0, "a", "integer"), (1, "b", "integer")]


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_columns_stay(policy: OnSchemaChange) -> None:
    assert result(given(B="integer", a="integer"), policy) == SAME


@pytest.mark.parametrize("policy", POLICIES)
def test_a_column_is_the_same_where_its_name_is_to_spark(policy: OnSchemaChange) -> None:
    current = [column(0, "id"), column(1, "b")]
    new = given(ıd="integer", b="integer")
    assert result(new, policy, current=current) == [(0, "id", "integer"), (1, "b", "integer")]


def test_a_new_column_has_a_tag_of_its_own() -> None:
    assert result(given(a="integer", b="integer", c="text")) == [*SAME, (2, "c", "text")]


def test_a_new_columns_default_is_kept() -> None:
    columns = evolved_columns(
        NODE, AB, given(a="integer", b="integer", C="text"), 2, defaults={"c": b"x"}
    )
    assert columns[-1] == column(2, "C", "text", b"x")


def test_append_new_columns_keeps_what_the_model_lacks() -> None:
    assert result(given(a="integer")) == SAME


def test_sync_drops_what_the_model_lacks() -> None:
    assert result(given(a="integer"), "sync_all_columns") == SAME[:1]


def test_a_column_that_comes_back_is_another_one() -> None:
    [kept] = evolved_columns(NODE, AB, given(a="integer"), 2, policy="sync_all_columns")
    again = result(given(a="integer", b="integer"), "sync_all_columns", current=[kept])
    assert again == [(0, "a", "integer"), (2, "b", "integer")]


def test_ignore_leaves_new_columns_out() -> None:
    assert result(given(a="integer", b="integer", c="text"), "ignore") == SAME


def test_a_renamed_column_keeps_its_tag() -> None:
    new = given(a="integer", price="integer")
    assert result(new, renames={"B": "price"}) == [(0, "a", "integer"), (1, "price", "integer")]


def test_a_rename_that_was_carried_out_is_nothing_new() -> None:
    current = [column(0, "a"), column(1, "price")]
    new = given(a="integer", price="integer")
    assert result(new, current=current, renames={"b": "price"}) == [
        (0, "a", "integer"),
        (1, "price", "integer"),
    ]


def test_a_wider_type_is_taken_over() -> None:
    assert result(given(a="bigint", b="integer"))[0] == (0, "a", "bigint")


def test_a_narrower_type_is_written_as_the_shards() -> None:
    current = [column(0, "a", "bigint"), column(1, "b")]
    assert result(given(a="integer", b="integer"), current=current)[0] == (0, "a", "bigint")


def test_all_problems_come_at_once() -> None:
    text = problem(
        given(a="text", c="integer"),
        "fail",
        renames={"x": "y"},
    )
    assert "4 problems" in text
    assert "column a is int (integer) in the shard and string (text) in the model" in text
    assert "the shard has b, which the model lacks" in text
    assert "the model has c, which the shard lacks" in text
    assert "Leave them out, or set it to append_new_columns, or to ignore" in text
    assert "the shard has no column x; it has a, b" in text


@pytest.mark.parametrize("policy", ["ignore", "fail"])
def test_policies_that_keep_types(policy: OnSchemaChange) -> None:
    text = problem(given(a="bigint", b="integer"), policy)
    assert f"on_schema_change: {policy} keeps types as they are. Cast it, or set" in text


def test_a_rename_to_a_name_that_is_taken_is_an_error() -> None:
    assert "columns of both names" in problem(given(a="integer"), renames={"b": "a"})


LAT_LON = record_of(Type("double"), Type("double"))


def struct(**fields: T.DataType) -> T.StructType:
    return T.StructType([T.StructField(name, kind) for name, kind in fields.items()])


RECORD, TURNED = (struct(**dict.fromkeys(names, T.DoubleType())) for names in ("xy", "yx"))
IN_CAPITALS = struct(X=T.DoubleType(), Y=T.DoubleType())


def of_spark(
    kind: Type, before: T.DataType, now: T.DataType, policy: OnSchemaChange = "fail"
) -> T.DataType:
    """The type in which a column is read after a run; or what is wrong with it."""
    old = [Column(0, "a", kind, spark(before))]
    new = [Column(0, "a", kind, spark(now))]
    [found] = evolved_columns(NODE, old, new, 1, policy=policy)
    assert (found.tag, found.kind) == (0, kind)
    return T.DataType.fromDDL(found.spark)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("kind", "around", "path"),
    [
        (LAT_LON, lambda inner: inner, "a"),
        (list_of(LAT_LON), T.ArrayType, r"a\[\]"),
        (map_of(TEXT, LAT_LON), lambda inner: T.MapType(T.StringType(), inner), "a.value"),
        (
            record_of(TEXT, list_of(LAT_LON)),
            lambda inner: struct(s=T.StringType(), l=T.ArrayType(inner)),
            r"a\.l\[\]",
        ),
    ],
)
def test_fields_are_not_taken_for_each_other(
    kind: Type, around: Any, path: str, policy: OnSchemaChange
) -> None:
    said = f"column {path} has the fields x, y in the shard and y, x in the model"
    with pytest.raises(ConfigError, match=said):
        of_spark(kind, around(RECORD), around(TURNED), policy)
    assert of_spark(kind, around(RECORD), around(IN_CAPITALS), policy) == around(RECORD)


def test_parts_of_a_range_go_by_place() -> None:
    bounds = [struct(**{one: T.BooleanType(), other: T.DateType()}) for one, other in ("ib", "pq")]
    before, now = struct(lower=bounds[0], upper=bounds[0]), struct(x=bounds[1], y=bounds[1])
    assert of_spark(range_of(Type("date")), before, now) == before


UNSIGNED = T.DecimalType(20, 0)
YEAR, MONTH = T.YearMonthIntervalType.YEAR, T.YearMonthIntervalType.MONTH
DAY, HOUR, SECOND = (getattr(T.DayTimeIntervalType, unit) for unit in ("DAY", "HOUR", "SECOND"))
DAY_TO_SECOND = T.DayTimeIntervalType(DAY, SECOND)
YEAR_TO_MONTH = T.YearMonthIntervalType(YEAR, MONTH)


@pytest.mark.parametrize(
    ("kind", "before", "now", "expected"),
    [
        (UINT8, T.IntegerType(), UNSIGNED, UNSIGNED),
        (UINT8, UNSIGNED, T.IntegerType(), UNSIGNED),
        (UINT8, T.IntegerType(), T.LongType(), T.LongType()),
        (
            list_of(UINT8),
            T.ArrayType(T.IntegerType()),
            T.ArrayType(T.LongType()),
            T.ArrayType(T.LongType()),
        ),
        (
            record_of(UINT8),
            struct(**{"a `b": T.IntegerType()}),
            struct(**{"A `b": T.LongType()}),
            struct(**{"a `b": T.LongType()}),
        ),
        (
            INTERVAL,
            T.YearMonthIntervalType(YEAR, YEAR),
            T.YearMonthIntervalType(MONTH, MONTH),
            YEAR_TO_MONTH,
        ),
        (
            INTERVAL,
            T.DayTimeIntervalType(DAY, HOUR),
            T.DayTimeIntervalType(SECOND, SECOND),
            DAY_TO_SECOND,
        ),
        (Type("time"), T.TimeType(0), T.TimeType(6), T.TimeType(6)),
    ],
    ids=str,
)
def test_a_type_of_sparks_that_holds_both_is_taken_over(
    kind: Type, before: T.DataType, now: T.DataType, expected: T.DataType
) -> None:
    spark(expected)
    assert of_spark(kind, before, now, "append_new_columns") == expected
    if expected != before:
        with pytest.raises(ConfigError, match="on_schema_change: ignore keeps types as they are"):
            of_spark(kind, before, now, "ignore")


@pytest.mark.parametrize(
    ("kind", "before", "now"),
    [
        (INTERVAL, DAY_TO_SECOND, YEAR_TO_MONTH),
        (INTERVAL, T.CalendarIntervalType(), DAY_TO_SECOND),
        (Type("uuid"), T.StringType(), T.BinaryType()),
        (UINT8, T.DecimalType(10, 0), T.LongType()),
    ],
    ids=str,
)
def test_types_of_sparks_of_which_none_holds_both(
    kind: Type, before: T.DataType, now: T.DataType
) -> None:
    with pytest.raises(ConfigError, match="does not hold all of its values"):
        of_spark(kind, before, now, "sync_all_columns")


def test_a_wider_type_is_read_in_one_that_holds_both() -> None:
    old = [Column(0, "a", Type("uint4"), "bigint")]
    [found] = evolved_columns(NODE, old, [Column(0, "a", UINT8, "int")], 1)
    assert (found.kind, found.spark) == (UINT8, "bigint")


names = st.sampled_from(["a", "b", "c", "d"])
models = st.dictionaries(names, st.sampled_from(["integer", "text"]), min_size=1, max_size=4)


@drawn(st.lists(st.tuples(models, st.sampled_from(POLICIES)), max_size=8))
def test_a_tag_is_never_used_twice(steps: list[tuple[dict[str, str], OnSchemaChange]]) -> None:
    columns = evolved_columns(NODE, (), given(a="integer"), 0)
    next_tag, ever = 1, {0: "integer"}
    for model, policy in steps:
        try:
            columns = evolved_columns(NODE, columns, given(**model), next_tag, policy=policy)
        except ConfigError:
            continue
        lower = [found.name for found in columns]
        assert len(set(lower)) == len(lower)
        for found in columns:
            assert ever.setdefault(found.tag, found.kind.name) == found.kind.name
        next_tag = max(next_tag, *(found.tag + 1 for found in columns))
        if policy == "sync_all_columns":
            assert {found.name for found in columns} == set(model)


NUMERIC = {
    (p, s): Type("numeric", precision=p, scale=s) for p, s in [(5, 2), (9, 2), (9, 4), (7, 4)]
}


@pytest.mark.parametrize(
    ("kind", "target", "wider"),
    [
        (INTEGER, BIGINT, True),
        (BIGINT, INTEGER, False),
        (INTEGER, Type("double"), True),
        (BIGINT, Type("double"), False),
        (Type("real"), Type("double"), True),
        (NUMERIC[5, 2], NUMERIC[9, 2], True),
        (NUMERIC[5, 2], NUMERIC[7, 4], True),
        (NUMERIC[9, 2], NUMERIC[9, 4], False),
        (INTEGER, NUMERIC[9, 2], False),
        (INTEGER, Type("numeric", precision=12, scale=2), True),
        (NUMERIC[5, 2], BIGINT, False),
        (list_of(INTEGER), list_of(BIGINT), True),
        (record_of(INTEGER, TEXT), record_of(BIGINT, TEXT), True),
        (record_of(INTEGER), record_of(INTEGER, TEXT), False),
        (map_of(INTEGER, INTEGER), map_of(BIGINT, INTEGER), False),
        (map_of(TEXT, INTEGER), map_of(TEXT, BIGINT), True),
        (Type("timestamp"), Type("timestamptz"), False),
        (TEXT, Type("bytea"), False),
    ],
    ids=str,
)
def test_wider_types_hold_every_value(kind: Type, target: Type, wider: bool) -> None:
    assert is_wider(target, kind) is wider
    assert is_wider(kind, kind)


def test_a_default_is_widened_with_its_column() -> None:
    default = datums(pa.array([50], pa.int32()), Type("integer"))[0].as_py()
    old = [column(0, "a"), column(1, "b", default=default)]
    [_, wider] = evolved_columns(NODE, old, given(a="integer", b="bigint"), 2)
    assert values_of_datums(pa.array([wider.default]), Type("bigint")).to_pylist() == [50]
