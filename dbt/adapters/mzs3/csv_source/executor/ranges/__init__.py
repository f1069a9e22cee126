"""One large object read by many tasks, exactly, whatever is inside quotes."""
