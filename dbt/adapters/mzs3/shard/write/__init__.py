"""A run of a model: its changes are uploaded, and then committed to the shard."""
