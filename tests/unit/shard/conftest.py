"""Makes this folder's helper modules importable."""
