"""S3 as a store of objects: list, find, read, write, delete, on conditions."""
