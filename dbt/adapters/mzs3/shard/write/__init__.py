"""A run of a model: uploads its changes, and commits them to the shard."""
