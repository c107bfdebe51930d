"""What is shown of the rules and of the relation, for all integers.

A theorem is a function that builds a formula, with its name, claim, witness and ablations in the
decorator above it (``proofs.smt.theorem``); ``guards`` holds the rules one by one, ``runs`` every
run of the relation, ``progress`` what goes on for ever and what stops. Each module of a group is a
script of its own (``python -m proofs.theorems.guards.boundary``). ``groups.py`` lists them all, and
``answers.py`` says which questions they answer. Goes in: the rules and the relation of ``spec``.
Comes out: obligations for ``proofs.smt``.
"""
