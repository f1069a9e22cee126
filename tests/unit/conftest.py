"""Puts `memory_s3` on the path of the tests below."""
