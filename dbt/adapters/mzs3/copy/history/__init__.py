"""The history of exports."""
