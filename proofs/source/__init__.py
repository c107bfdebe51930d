"""TODO sign of proofs/source."""
