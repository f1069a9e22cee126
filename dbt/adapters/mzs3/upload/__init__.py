"""Rows as files that are uploaded, and not visible yet."""
