"""The judge of whole runs: in goes a trace, out come findings.

``monitor`` hands each step to ``residency`` (what is where when it is read), ``counts`` (what
changes, and by how much) and ``progress`` (whether anything goes on). It does not know who recorded
the trace. Knows ``spec.claims``, ``spec.history``, ``spec.record`` and ``spec.rules``.
"""
