"""TODO sign of proofs/search/runs."""
