"""Formats of objects, written and read."""
