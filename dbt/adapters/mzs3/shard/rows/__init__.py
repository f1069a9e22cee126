"""Spark's side of a shard: its types, the wire form of rows, and what changed between two."""
