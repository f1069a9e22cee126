"""The record of what happened to a source's objects: its tables, its lock, and its queries."""
