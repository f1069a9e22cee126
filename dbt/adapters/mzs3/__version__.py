"""The adapter's version, read by dbt after every model."""

version = "0.1.0"
