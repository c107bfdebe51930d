"""Formulas put to two solvers: an obligation is PROVED only if z3 and cvc5 both say so.

In goes an obligation (premises, conclusion, witness, ablations: ``obligation.py``; the decorator
that makes one of a function: ``theorem.py``), out comes a verdict with the smallest counterexample,
replayed on integers. ``vocabulary.py`` has what formulas are built of, ``solvers.py`` the solvers,
``proving.py`` runs obligations, ``outputs.py`` writes what became of them, ``main.py`` is the
command line of a group, ``mutate.py`` makes changes to guards that a proof must notice. Knows
``spec``, ``proofs.jobs`` and ``proofs.describe``.
"""
