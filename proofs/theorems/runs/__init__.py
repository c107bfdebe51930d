"""Theorems on every run: the relation's transitions keep its invariants, which show the claims.

``kept.py`` says how such a theorem is stated, ``variables.py`` how a state becomes a formula's
variables, ``witnesses.py`` holds a state for each transition, ``faults.py`` the known faults as the
relation sees them. The other modules are groups. Knows ``proofs.smt`` and ``spec.relation``.
"""
