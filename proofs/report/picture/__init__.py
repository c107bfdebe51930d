"""TODO sign of proofs/report/picture."""
