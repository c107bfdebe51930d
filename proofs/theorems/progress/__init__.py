"""Theorems on progress: correct rules go on for ever, and exactly where others stop.

One group, ``progress``, in modules by subject; ``group.py`` puts them together. Knows
``proofs.smt``, the rules of ``spec`` and the names of premises in ``guards/scene.py``.
"""
