"""TODO sign of impl/reference/worker."""
