"""TODO sign of proofs/run."""
