"""TODO sign of proofs/dossiers."""
