"""TODO sign of proofs/settings/stuck."""
