"""Proofs about the relation of :mod:`spec.relation`: any number of requests, features and steps.

The groups themselves are :mod:`proofs.slots`, :mod:`proofs.residency`, :mod:`proofs.references` and
:mod:`proofs.items`; here is what they share.
"""
