"""The types of columns in a shard; runs on the driver and on executors alike."""
