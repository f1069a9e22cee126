"""File formats: Arrow batches as bytes."""
