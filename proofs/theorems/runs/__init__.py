"""TODO sign of proofs/theorems/runs."""
