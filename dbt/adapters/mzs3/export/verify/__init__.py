"""Reads what an export has written, and compares it with its manifest."""
