"""The rows of a query: their logical types, canonical form, order, and parts."""
