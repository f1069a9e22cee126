"""From the query's rows to uploads that are still open."""
