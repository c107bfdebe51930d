"""A release's own source under proof: its functions run unchanged on symbolic integers.

In goes the folder of a vLLM, of which nothing is imported; out comes a verdict for each claim on
each part. ``code`` runs it, ``functions`` and ``passes`` say what must hold, ``ask`` puts it to the
solvers, ``check`` does all. Knows ``proofs.symbolic``, ``proofs.smt`` and ``spec``.
"""
