"""What closes each claim, proofs, searches, witnesses, faults and tests, and what is missing.

``records.py`` says what a record holds, ``build.py`` fills it from claims, theorems, searches,
switches and the recorded exploration, ``reasons.py`` and ``tests.py`` hold what no code tells,
``witnesses.py`` runs what the records rest on, ``gaps.py`` says what is missing, ``claim_text.py``
tells it to people. Knows the theorems, the searches and the source under proof.
"""
