"""What was shown, and how it is told: proofs of the rules and of the source, search, reports."""
