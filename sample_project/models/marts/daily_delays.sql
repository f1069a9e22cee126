select
    flight_date,
    origin,
    airline,
    count(*) as flights,
    count_if(is_cancelled) as cancelled,
    cast(avg(departure_delay) as decimal(8, 2)) as average_departure_delay,
    max(departure_delay) as longest_departure_delay,
    cast(min(visibility) as decimal(5, 2)) as worst_visibility
from {{ ref('flights') }}
group by flight_date, origin, airline
