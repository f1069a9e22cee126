-- Left joins: some planes, destinations and weather hours are missing from the data, and no
-- flight may be lost to that.
select
    flights.*,
    airlines.airline,
    airports.airport_name as destination_name,
    planes.manufacturer,
    planes.model,
    planes.seats,
    weather.temperature,
    weather.wind_speed,
    weather.precipitation,
    weather.visibility
from {{ ref('stg_flights') }} as flights
left join {{ ref('stg_airlines') }} as airlines
    on flights.carrier = airlines.carrier
left join {{ ref('stg_airports') }} as airports
    on flights.destination = airports.airport
left join {{ ref('stg_planes') }} as planes
    on flights.tail_number = planes.tail_number
left join {{ ref('stg_weather') }} as weather
    on flights.origin = weather.origin
    and flights.scheduled_hour = weather.observed_hour
