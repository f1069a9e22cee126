"""What is wrong with a model's query, before it runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import types as T

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.names import ONE_NAME
from dbt.adapters.mzs3.shard.options import sort_problems
from dbt.adapters.mzs3.shard.write.model import checked_frame, type_problems

NODE = "model.acme.orders"


def schema_of(*names: str) -> T.StructType:
    return T.StructType([T.StructField(name, T.LongType()) for name in names])


def checked(*names: str) -> Any:
    frame = SimpleNamespace(schema=schema_of(*names))
    return checked_frame(SimpleNamespace(sql=lambda _: frame), NODE, "select 1")  # type: ignore[arg-type]


def test_each_column_has_a_name_of_its_own_to_spark() -> None:
    assert checked("ss", "\u00df").schema == schema_of("ss", "\u00df")
    with pytest.raises(ConfigError) as caught:
        checked("id", "b", "ID", "\u0131d", "b")
    assert list(caught.value.problems) == [
        f"the query has columns id and ID, which are {ONE_NAME}; rename one",
        f"the query has columns id and \u0131d, which are {ONE_NAME}; rename one",
        "the query has two columns named b; rename one",
    ]


def test_times_that_end_with_the_microsecond_are_all_that_a_shard_takes() -> None:
    kinds = {"fine": T.TimeType(6), "list": T.ArrayType(T.TimeType(7))}
    frame = SimpleNamespace(
        schema=T.StructType([T.StructField(name, kind) for name, kind in kinds.items()])
    )
    with pytest.raises(ConfigError, match=r"column list\[\] has the type time\(7\)") as caught:
        checked_frame(SimpleNamespace(sql=lambda _: frame), NODE, "select 1")  # type: ignore[arg-type]
    assert len(caught.value.problems) == 1


def test_options_name_columns_as_spark_does() -> None:
    assert list(sort_problems(["\u0131d"], ["id"])) == []
    assert list(sort_problems(["idd"], ["id"])) == [
        "sort_by has idd, which the shard lacks; it has id"
    ]
    assert type_problems(schema_of("\u0131d"), {}) == {}
