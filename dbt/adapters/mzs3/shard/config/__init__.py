"""The configuration of models and sources of shards."""
