"""The ablation matrix: which of the protocol's guards are needed, alone and together.

In goes a choice of guards (``cells``: margin, cut, reservation, tolerance, shift and look-ahead);
out comes, for each, a theorem or the smallest run that breaks a claim (``decide``), which the
reference with the same guards repeats (``confirm``). Words: *rules* are what an engine does where
releases differ, a *fault* is a named switch over the reference. Knows ``spec``, ``impl``,
``proofs.run`` and, for the size of a scenario, ``proofs.search.runs``.
"""
