"""Recorded runs, laid against the relation that the unbounded proofs are about.

In goes a trace; out come the transitions that each of its projections takes, and where one of them
leaves the relation (``outside``). Knows ``spec.relation`` and ``spec.history``.
"""
