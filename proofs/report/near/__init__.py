"""TODO sign of proofs/report/near."""
