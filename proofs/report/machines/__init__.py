"""TODO sign of proofs/report/machines."""
