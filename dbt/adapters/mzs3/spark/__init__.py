"""The Spark session, and running jobs on it."""
