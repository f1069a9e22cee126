"""S3 CSV sources: definition, purification, listing, fetching, committing."""
