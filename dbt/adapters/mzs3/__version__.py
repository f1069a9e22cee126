"""The adapter's version, which dbt reads after every model."""

version = "0.1.0"
