"""The stuck states that settings allow, each with its theorems and the smallest prompt.

In go settings and the rules of a release; out come stops, or the theorems why there is none
(``safe``), or what the theorems leave open (``not_settled``). ``stops`` is where to begin. Knows
``spec`` only.
"""
