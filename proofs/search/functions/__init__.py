"""Random search on single functions: gather, free, book, window search.

In go the parts of a target; out comes a verdict for each claim on each part, with the smallest case
that breaks it. ``strategies`` draws the cases, ``premises`` says which of them count. Knows
``spec.functions`` and the reducer above.
"""
