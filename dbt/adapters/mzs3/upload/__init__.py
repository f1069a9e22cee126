"""Rows as multipart uploads, which become visible objects once they are completed."""
