"""Work that `spark-submit` does: what starts it, and the driver that it starts."""
