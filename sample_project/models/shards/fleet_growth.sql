-- One shard at two moments: as of `planes_flown_as_of`, and as of its latest run. A source is
-- read before the model, so this one says that the shard is written first.
-- depends_on: {{ ref('planes_flown') }}
{{ config(materialized='table', file_format='parquet') }}

select
    count(earlier.tail_number) as planes_then,
    count(*) as planes_now,
    sum(earlier.flights) as flights_then,
    sum(latest.flights) as flights_now
from {{ source('history', 'planes_flown_now') }} as latest
left join {{ source('history', 'planes_flown_then') }} as earlier
    on latest.tail_number = earlier.tail_number
