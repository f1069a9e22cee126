"""Connects the features to dbt: what a project declares, and what its runs need of sources."""
