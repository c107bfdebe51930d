"""Random search over whole runs: scenarios, what they cover, grouping and shrinking of findings."""
