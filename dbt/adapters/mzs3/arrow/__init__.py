"""Arrow arrays, below what Arrow's own functions do; runs on executors."""
