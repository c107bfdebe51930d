"""TODO sign of proofs/source/ask."""
