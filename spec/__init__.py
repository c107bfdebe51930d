"""What must hold: geometry, rules, oracles, claims and traces, on integers only.

In go integers, or terms that stand for them, and recorded runs; out come truth values and findings.
``rules`` are the guards of the protocol, ``claims`` what must hold of every run, ``record`` the
data that is judged, ``monitor``, ``model`` and ``relation`` three ways to judge it. Knows no other
room, no tensor and no solver.
"""
