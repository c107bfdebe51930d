"""What must hold: geometry, rules, oracles, claims and traces, on integers only."""
