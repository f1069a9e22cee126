"""AWS connections: parsing, clients, checks."""
