"""Values of every type of Spark that shards have a type for."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F

EVERY_TYPE = """
select id, cast(id as tinyint) as a, cast(id as decimal(38, 10)) / 3 as b,
  if(id = 0, -0.0d, cast('NaN' as double)) as c, cast(id as float) as d, date '2024-02-29' as e,
  timestamp '2024-02-29 01:02:03.456789' as f, timestamp_ntz '0001-01-01 00:00:00' as g,
  time '23:59:59.999999' as h, interval '-3 04:05:06.789' day to second as i,
  interval '-1-2' year to month as j, parse_json('{"a":[1,null]}') as k, array(1, null) as l,
  map('a', null, 'x', named_struct('y', id)) as m, named_struct('p q', 1, 'r', array(1.5f)) as n,
  X'00ff' as o, cast(null as void) as p, id = 1 as q, cast('v' as varchar(3)) as r
from range(2)
"""


def texts(frame: Any) -> list[Any]:
    """Every value as Spark writes it, as Python has no values for some types."""
    columns = [
        F.to_json(name) if kind == "variant" else F.col(name).cast("string")
        for name, kind in frame.dtypes
    ]
    return sorted((tuple(row) for row in frame.select(*columns).collect()), key=repr)
