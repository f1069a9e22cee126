-- A test is a query that must return nothing: the joins of the mart keep the rows as they are.
select staged.flights as staged, joined.flights as joined
from (select count(*) as flights from {{ ref('stg_flights') }}) as staged
cross join (select count(*) as flights from {{ ref('flights') }}) as joined
where staged.flights <> joined.flights
