"""From open uploads to an export that is visible, all at once."""
