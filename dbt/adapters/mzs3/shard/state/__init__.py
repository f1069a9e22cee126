"""The state of a shard: what its columns were and are, which batches it has, who may change it."""
