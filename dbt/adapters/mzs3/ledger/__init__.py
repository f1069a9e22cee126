"""What happened to a source's objects: its tables, its lock, and how they are read."""
