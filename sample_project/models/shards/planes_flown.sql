{#-
  Every run writes what changed since the run before: planes that flew for the first time, and
  two rows for each that flew again, one that takes the old counts back and one with the new
  ones. The year goes by from run to run: dbt run --vars '{through_month: 8}'
-#}
{{
    config(
        location='s3://' ~ var('exports_bucket') ~ '/shards/planes_flown',
        parts=1,
    )
}}

select
    tail_number,
    count(*) as flights,
    min(flight_date) as first_flight
from {{ ref('stg_flights') }}
where tail_number is not null
    and not is_cancelled
    and month(flight_date) <= {{ var('through_month', 4) }}
group by tail_number
