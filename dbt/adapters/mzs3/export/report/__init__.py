"""A page about past exports: how often, how reliable, how long, how large."""
