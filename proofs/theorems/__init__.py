"""TODO sign of proofs/theorems."""
