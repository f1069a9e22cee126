"""Files of a batch: written, and read again."""
