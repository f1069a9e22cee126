"""Arrow batches as the CSV that PostgreSQL writes."""
