"""TODO sign of proofs/drive."""
