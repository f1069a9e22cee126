"""A run of a model: what changed is uploaded, and then part of the shard."""
