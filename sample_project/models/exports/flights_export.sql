{#-
  A COPY never writes where objects already are. A location that is a SQL expression gives each
  run a prefix of its own: mz_now() is the run's start in milliseconds since 1970, the same for
  every model of the run. A literal such as 's3://acme-exports/flights' works once.
-#}
{{ config(location="'s3://" ~ var('exports_bucket') ~ "/flights/' || mz_now()") }}

select * from {{ ref('stg_flights') }}
