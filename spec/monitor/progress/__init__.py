"""TODO sign of spec/monitor/progress."""
