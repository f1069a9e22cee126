"""Puts `csv_source_helpers` on the path of the tests below."""
