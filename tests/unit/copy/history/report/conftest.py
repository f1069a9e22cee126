"""Puts `report_runs` on the path of the tests below."""
