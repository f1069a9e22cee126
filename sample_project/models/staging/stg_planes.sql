select
    tailnum as tail_number,
    year as built_in,
    manufacturer,
    model,
    seats
from {{ source('lake', 'planes') }}
