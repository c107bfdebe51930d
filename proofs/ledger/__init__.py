"""What closes each claim, as plain data, and what is missing.

In go the claims, the proofs, the searches, the faults and the witnesses, which are run; out comes a
record for each claim (``build``) and every link that is cut (``gaps``). ``reasons`` and ``tests``
hold what no code says. Knows ``spec``, ``impl`` and the rooms that prove and search.
"""
