"""TODO sign of proofs/theorems/progress."""
