"""TODO sign of proofs/report/ready."""
