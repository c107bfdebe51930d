"""TODO sign of proofs/report/pages."""
