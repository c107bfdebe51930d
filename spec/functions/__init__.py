"""TODO sign of spec/functions."""
