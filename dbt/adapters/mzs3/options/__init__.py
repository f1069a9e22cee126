"""Options: how they are declared, read, checked and documented."""
