"""Random search over whole runs.

In go a target and settings; out comes a verdict for each claim, with the smallest run that breaks
it. ``build`` makes one legal scenario from a source of choices, ``draws`` numbers them, ``search``
runs and judges them. Knows ``proofs.run`` and the reducer above.
"""
