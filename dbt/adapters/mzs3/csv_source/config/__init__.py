"""What a source's `external` says, one topic to a file, each checked with all of its problems."""
