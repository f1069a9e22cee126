"""Jobs of `spark-submit`: the process that dbt starts, and the driver that runs in it."""
