"""What was shown, and how it is told: proofs of the rules and of the source, search, reports.

In go what ``spec`` states and what ``impl`` runs; out come verdicts, counterexamples and the pages
about them. ``theorems``, ``source``, ``search``, ``explore`` and ``ablate`` show something,
``results`` and ``report`` tell it, ``commands`` is where a user enters. Each room's sign says which
others it knows.
"""
