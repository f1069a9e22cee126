"""What users ask of one source: how it stands, and decisions about its objects."""
