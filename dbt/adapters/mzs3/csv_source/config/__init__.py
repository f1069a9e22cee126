"""What a source declares beyond its dialect and columns, a module for each concern."""
