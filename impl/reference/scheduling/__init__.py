"""TODO sign of impl/reference/scheduling."""
