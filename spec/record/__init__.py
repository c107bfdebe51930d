"""TODO sign of spec/record."""
