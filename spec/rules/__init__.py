"""TODO sign of spec/rules."""
