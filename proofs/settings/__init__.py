"""TODO sign of proofs/settings."""
