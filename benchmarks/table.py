"""The tables that are exported."""

BYTES_PER_ROW = 152  # of the first table, as CSV

# Twelve columns as exports have them; the text has what CSV must quote, and NULLs.
TABLE = """
select
    id,
    cast(hash(id) as int) as customer,
    cast(pmod(hash(id, 1), 1000) as smallint) as quantity,
    cast(pmod(xxhash64(id), 100000000) / 100 as decimal(12, 2)) as price,
    cast(pmod(xxhash64(id, 1), 1000000) / 10000 as decimal(8, 4)) as rate,
    xxhash64(id, 2) / 1e13 as score,
    date_add(date'2015-01-01', cast(pmod(hash(id, 2), 4000) as int)) as ordered_on,
    timestamp_micros(1420070400000000 + pmod(xxhash64(id, 3), 315360000000000)) as created_at,
    pmod(hash(id, 3), 2) = 0 as is_paid,
    if(pmod(hash(id, 4), 10) = 0, null, concat('city, number ', pmod(hash(id, 5), 5000))) as city,
    cast(pmod(hash(id, 8), 100) as tinyint) as discount,
    case pmod(hash(id, 6), 8)
        when 0 then null
        when 1 then concat('said "yes" to offer ', pmod(hash(id, 7), 100000))
        when 2 then concat('two lines,\\nthe second ', pmod(hash(id, 7), 100000))
        else concat('nothing to remark here, no ', pmod(hash(id, 7), 100000))
    end as remark
from range(0, {rows}, 1, 8)
"""

# What it has when it is read again.
COLUMNS = {
    "id": "bigint",
    "customer": "int",
    "quantity": "smallint",
    "price": "decimal(12,2)",
    "rate": "decimal(8,4)",
    "score": "double",
    "ordered_on": "date",
    "created_at": "timestamp",
    "is_paid": "boolean",
    "city": "string",
    "discount": "tinyint",
    "remark": "string",
}

# 200 rows for each day.
PARTITIONED = """
select
    id,
    date_add(date'2010-01-01', cast(id % {partitions} as int)) as day,
    concat('nothing to remark here, no ', hash(id)) as remark
from range(0, {partitions} * 200, 1, 8)
"""
