"""The object store: connections, clients, requests for objects and uploads, and their errors."""
