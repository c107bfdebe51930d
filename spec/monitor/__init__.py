"""TODO sign of spec/monitor."""
