"""A shard's rows in Spark: the wire form, changes between rows, and parts."""
