"""TODO sign of proofs/smt."""
