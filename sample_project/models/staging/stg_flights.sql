select
    make_date(year, month, day) as flight_date,
    carrier,
    flight as flight_number,
    tailnum as tail_number,
    origin,
    dest as destination,
    time_hour as scheduled_hour,
    sched_dep_time as scheduled_departure,
    dep_time as departure,
    dep_delay as departure_delay,
    sched_arr_time as scheduled_arrival,
    arr_time as arrival,
    arr_delay as arrival_delay,
    air_time,
    distance,
    dep_time is null as is_cancelled
from {{ source('lake', 'flights') }}
