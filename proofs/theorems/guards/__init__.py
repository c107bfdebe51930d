"""Theorems on single guards: a step, a window, a reference, a book, a chunk.

A module is a group and a script of its own; ``scene.py`` holds the variables that they share.
Knows ``proofs.smt`` and the rules of ``spec``.
"""
