"""What lies near a violation: the same run with one number or one guard changed.

In go a scenario and a claim; out come the runs beside it and which of them break the claim too.
Knows ``proofs.drive`` and ``proofs.run``, and draws nothing.
"""
