"""Spark's types and what each is elsewhere, and the calendar; runs on executors."""
