"""The rows of a query in logical types, in a canonical form and order, in parts."""
