"""TODO sign of proofs/theorems/guards."""
