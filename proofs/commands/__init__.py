"""TODO sign of proofs/commands."""
