"""TODO sign of spec/history."""
