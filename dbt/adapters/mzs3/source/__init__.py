"""Sources of objects in S3: definition, purification, listing, fetching, committing."""
