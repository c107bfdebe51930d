"""TODO sign of proofs/search/functions."""
