"""Exports a table that holds what is hard to order, in every format, as its one argument says.

Run as a process of its own, since a process has one Spark. The argument is JSON: `parameters` of
Spark, the `order` in which rows come, the S3 `endpoint`, the `bucket`, and for each folder in
`exports` the name of what is exported there.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from dbt.adapters.mzs3.events import CopyEvent
from dbt.adapters.mzs3.export.job import copy_to_s3
from dbt.adapters.mzs3.export.monitor import RunContext
from dbt.adapters.mzs3.formats.write import FORMATS
from dbt.adapters.mzs3.spark.session import get_or_create
from dbt.adapters.mzs3.store.connection import AwsConnection

# Duplicates, NULLs in every place, both zeros at every depth, NaN, texts that a collation takes
# for equal, maps whose entries come in either order, and 4000 rows that differ in the signs of
# their zeros and NaNs alone, which to Spark's own order are the same.
TABLE = """
select
  if(same, 1, int(i % 97)) as id,
  case when same or i % 50 > 1 then 'most' when i % 50 = 1 then 'few' end as region,
  same or i % 2 = 1 as odd,
  case when same then 'same' when i % 5 > 1 then concat('r', i % 13) when i % 5 = 1 then '' end
    as name,
  case i div 2 % if(same, 4, 6) when 0 then 0.0D when 1 then -0.0D when 2 then nan when 3 then -nan
    when 4 then infinity - infinity end as zero,
  array(case when same then element when i % 3 < 2 then float(nan) end) as zeros,
  cast(if(same, 1, i % 7) as decimal(10, 2)) as amount,
  timestamp_micros(if(same, 1, i % 11)) as at,
  timestamp_ntz'2024-03-10 02:30:00' as local,
  date_add(date'2024-02-28', if(same, 0, int(i % 3))) as day,
  time'10:20:30.5' as noon,
  if(i % 3 = 0 or same, null, make_interval(0, 0, 0, int(i % 2))) as age,
  make_ym_interval(0, if(same, 0, int(i % 5))) as months,
  make_dt_interval(0, if(same, 0, int(i % 30))) as hours,
  case when same then null when i % 4 = 0 then parse_json('{"b": [1.50, null], "a": -0.0}')
    when i % 4 = 1 then cast(timestamp_micros(i % 5) as variant) end as doc,
  if(i % 4 > 0 or same, named_struct('x', element, 'tags', array('t', null)), null) as point,
  case when same then map('a', element) when i % 3 = 0 then map('a', 0.0F, 'b', -0.0F)
    when i % 3 = 1 then map('b', -0.0F, 'a', 0.0F) else map('a', float(-nan)) end as lookup,
  if(same or i % 2 = 0, 'Ä', 'ä') collate utf8_lcase as letter,
  if(same, X'00', unhex(hex(i % 300))) as raw,
  if(same, '', repeat('x', int(i % 23))) as filler
from (
  select
    i, i >= 20000 as same,
    -- To the optimizer, if() of two zeros is the first of them.
    case i % 2 when 0 then 0.0F when 1 then -0.0F end as element,
    -- Out of the optimizer's reach, as the hardware gives a computed NaN a sign of its own.
    double(if(i < 0, '', 'NaN')) as nan, double(if(i < 0, '', 'Infinity')) as infinity
  from (select {i} as i from range(24000))
)
"""
# The rows, reaching Spark in one order or in the opposite one.
QUERIES = {
    "forward": TABLE.replace("{i}", "id"),
    "backward": TABLE.replace("{i}", "23999 - id"),
}
ROWS = 24_000

_IN_PARTS = {"parts": 3, "max_file_size": "200kB"}
_COMPRESSED = {"parts": 3, "max_file_size": "60kB"}
EXPORTS: dict[str, dict[str, Any]] = {
    "csv": {**_IN_PARTS, "header": True, "on_existing": "resume"},
    "gzip": {**_COMPRESSED, "compression": "gzip"},
    "zstd": {**_COMPRESSED, "compression": "zstd"},
    "folders": {**_IN_PARTS, "partition_by": ["region", "odd"]},
    "single": {"single_file": "all.csv"},
    "flat": {"parts": 3, "header": True},
    "flat_plain": {"parts": 3},
}
OTHERS = [name for name in FORMATS if name not in EXPORTS]
for _name in OTHERS:
    EXPORTS[_name] = {**_IN_PARTS, "format": _name}
    EXPORTS[f"{_name}_folders"] = {"parts": 3, "format": _name, "partition_by": ["day"]}
    EXPORTS[f"flat_{_name}"] = {"parts": 3, "format": _name}
# With no nested column, a hash alone orders the rows; many are there several times.
FLAT = "id % 7 as id, region, odd, zero, amount, day, noon, letter, if(odd, null, 1) as one"
PLAIN = FLAT.replace("noon, letter, ", "")  # of types that Comet knows


def main(
    parameters: dict[str, str], order: str, endpoint: str, bucket: str, exports: dict[str, str]
) -> None:
    spark = get_or_create(
        {
            "spark.ui.enabled": "false",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.log.level": "ERROR",
            **parameters,
        }
    )
    connection = AwsConnection(
        endpoint=endpoint,
        addressing_style="path",
        access_key_id="testing",
        secret_access_key="testing",
    )
    told: list[CopyEvent] = []
    for folder, name in exports.items():
        columns = PLAIN if name == "flat_plain" else FLAT if "flat" in name else "*"
        result = copy_to_s3(
            spark,
            f"select {columns} from ({QUERIES[order]})",
            node="model.test.hard_to_order",
            options={**EXPORTS[name], "location": f"s3://{bucket}/{folder}"},
            connections={"default": connection},
            as_of=1,
            context=RunContext(tell=told.append),
        )
        assert result.rows == ROWS, result
    by_comet = any(event.name == "mzs3.copy.native" for event in told)
    assert by_comet == ("spark.plugins" in parameters)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
