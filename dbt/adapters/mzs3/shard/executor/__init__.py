"""What runs on executors: rows to bytes of a batch, and back."""
