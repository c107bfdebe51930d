"""TODO sign of impl/targets."""
