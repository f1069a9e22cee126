"""What a model's config asks of a shard."""
