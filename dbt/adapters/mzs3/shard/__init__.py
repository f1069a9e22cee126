"""Shards: a model's history in S3, as batches of changes that describe themselves."""
