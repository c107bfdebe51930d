"""TODO sign of proofs/ledger."""
