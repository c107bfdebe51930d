"""TODO sign of proofs/settings/flags."""
