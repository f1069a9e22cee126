"""Compaction: one batch in the place of many, and garbage collection of their files."""
