"""What the passes of a release must do, claim by claim, on every path.

In go a symbolic request, book and configuration; out come conditions on one call of the scheduling
of encoder inputs (``call_...``), on passes of it (``scheduling_...``) and on whole runs
(``run_...``). Knows ``proofs.source.code`` and ``proofs.source.ask``.
"""
