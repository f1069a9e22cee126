"""Groups of keys under `external`, each parsed by itself."""
