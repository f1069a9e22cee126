select
    faa as airport,
    name as airport_name,
    lat as latitude,
    lon as longitude,
    tzone as time_zone
from {{ source('lake', 'airports') }}
