"""Scenarios and files, run on the target that was named.

In go a scenario, a case or a file and the name of a target; out come judged runs, made small where
they break a claim. ``replay`` and ``report`` start here, as do the jobs with one vLLM each. Knows
``impl``, ``proofs.run``, ``proofs.search`` and ``proofs.source``.
"""
