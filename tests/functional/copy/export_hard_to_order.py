"""Exports a table that holds what is hard to order, on the master it is given.

Run as a process of its own, since a process has one Spark: arguments are the master, the order in
which rows come, the S3 endpoint and the location.
"""

from __future__ import annotations

import sys

from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.copy.job import copy_to_s3
from dbt.adapters.mzs3.spark.session import get_or_create

# Duplicates, NULLs in every place, both zeros (alone and in arrays), NaN, empty strings.
VARIED = """
select
  cast(id % 97 as int) as id,
  case when id % 5 = 0 then null when id % 5 = 1 then '' else concat('r', id % 13) end as name,
  case id % 4 when 0 then 0.0D when 1 then -0.0D when 2 then double('NaN') end as zero,
  array(case id % 3 when 0 then 0.0F when 1 then -0.0F end) as zeros,
  cast(id % 7 as decimal(10, 2)) as amount,
  timestamp_micros(id % 11) as at
from range(20000)
"""
# Rows that differ in the signs of their zeros alone: to Spark's sort they are the same.
SAME = """
select
  1 as id, 'same' as name, {zero} as zero, array({element}) as zeros, 1.00 as amount,
  timestamp_micros(1) as at
from range(1000)
"""
ZEROS = [("0.0D", "0.0F"), ("-0.0D", "0.0F"), ("0.0D", "-0.0F"), ("-0.0D", "-0.0F")]


def query(order: str) -> str:
    """The same rows, reaching Spark in one order or in the opposite one."""
    same = [SAME.format(zero=zero, element=element) for zero, element in ZEROS]
    branches = [VARIED, *same]
    return " union all ".join(branches if order == "forward" else reversed(branches))


def main(master: str, order: str, endpoint: str, location: str) -> None:
    spark = get_or_create(
        {
            "spark.master": master,
            "spark.ui.enabled": "false",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.shuffle.partitions": "3",
        }
    )
    connection = AwsConnection(
        endpoint=endpoint,
        addressing_style="path",
        access_key_id="testing",
        secret_access_key="testing",
    )
    copy_to_s3(
        spark,
        query(order),
        node="model.test.hard_to_order",
        options={"location": location, "parts": 3, "max_file_size": "200kB", "header": True},
        connections={"default": connection},
        as_of=1,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
