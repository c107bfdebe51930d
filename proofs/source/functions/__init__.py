"""TODO sign of proofs/source/functions."""
