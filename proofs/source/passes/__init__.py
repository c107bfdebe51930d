"""TODO sign of proofs/source/passes."""
