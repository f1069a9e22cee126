"""Reading a shard as of a time."""
