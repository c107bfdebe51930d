"""TODO sign of spec/relation/runs."""
