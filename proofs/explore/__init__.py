"""Exhaustive search of small scopes on the model, in lockstep with a target.

In go a scope (``scope``) and a fault, if any; out come every state that the model reaches, what it
breaks, and the shortest way there (``search``, ``graph``, ``paths``). The same rounds are run on
the reference (``lockstep``) and laid against the relation of the proofs (``related``). Knows
``spec``, ``impl`` and, for the size of a scenario, ``proofs.search.runs``.
"""
