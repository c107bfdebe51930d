"""TODO sign of proofs/report/text."""
