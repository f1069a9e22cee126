"""Compaction: few batches for many, and files that no batch names removed."""
