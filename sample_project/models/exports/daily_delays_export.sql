{{
    config(
        location="'s3://" ~ var('exports_bucket') ~ "/daily_delays/' || mz_now()",
        header=true,
        parts=1,
    )
}}

select * from {{ ref('daily_delays') }}
