"""TODO sign of impl/faults."""
