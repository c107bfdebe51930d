"""TODO sign of proofs/report/story."""
