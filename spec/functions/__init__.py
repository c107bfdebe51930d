"""Single functions: their cases, what they should return, and the judge of what they did.

In go a case and an observation; out come findings. ``gather``, ``book`` and ``slots`` are the
oracles, ``monitor`` compares, ``case_files`` writes cases as JSON. Knows ``spec.rules`` and
``spec.record``.
"""
