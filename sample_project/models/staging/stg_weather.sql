select
    origin,
    time_hour as observed_hour,
    temp as temperature,
    wind_speed,
    precip as precipitation,
    visib as visibility
from {{ source('lake', 'weather') }}
