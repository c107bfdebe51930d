"""Run plain Python code on symbolic integers and enumerate every feasible path."""
