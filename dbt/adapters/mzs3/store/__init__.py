"""The store: connections to it, its clients, objects, uploads, listings, and what fails."""
