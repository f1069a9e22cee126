"""Spark's types and their counterparts elsewhere, and the calendar; runs on executors."""
