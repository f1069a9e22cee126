"""The formats that objects may have: one module each, and what they have in common."""
