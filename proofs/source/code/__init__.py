"""TODO sign of proofs/source/code."""
