"""From the bytes of objects to batches of rows: CSV, JSON lines, Avro and Parquet."""
