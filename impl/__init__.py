"""What runs: the reference implementation, its faults, and the real thing, as targets."""
