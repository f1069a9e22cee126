"""Settings of the property tests here: their time is the machine's affair."""

from hypothesis import settings

settings.register_profile("csv_source", deadline=None)
settings.load_profile("csv_source")
