"""The state of a shard: its schemas and batches, and the rules by which they change."""
