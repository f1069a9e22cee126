"""The files of a batch."""
