"""TODO sign of proofs/jobs."""
