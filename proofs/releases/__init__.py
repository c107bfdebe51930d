"""TODO sign of proofs/releases."""
