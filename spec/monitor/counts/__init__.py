"""TODO sign of spec/monitor/counts."""
