"""TODO sign of spec/claims."""
