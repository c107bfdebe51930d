"""The judge of single functions: in go a case and what a target did, out come findings.

``observed`` chooses by the kind of case and judges gathers, window searches and row ranges;
``free_moments``, ``book_operations`` and ``scheduled_passes`` judge the others, on the ``slots`` of
either book. A claim that has a statement in ``spec.claims`` is judged by it, all else against the
oracles of ``spec.functions``. Knows these two, ``spec.record`` and ``spec.rules``.
"""
