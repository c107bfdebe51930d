"""TODO sign of proofs/describe."""
