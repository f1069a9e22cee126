"""Puts `report_runs` on the path of the tests below; their time is the machine's affair."""

from hypothesis import settings

settings.register_profile("report", deadline=None)
settings.load_profile("report")
