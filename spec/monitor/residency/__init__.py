"""TODO sign of spec/monitor/residency."""
