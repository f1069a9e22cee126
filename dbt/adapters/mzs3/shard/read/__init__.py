"""A shard's rows as of a time."""
