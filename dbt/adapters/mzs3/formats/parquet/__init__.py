"""Arrow batches as Parquet with Materialize's types."""
