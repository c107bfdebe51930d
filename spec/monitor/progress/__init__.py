"""Whether a run goes on: it neither stands still, nor turns in a circle, nor holds anybody up.

In go a step and what came before it; out come findings, with who waits for what. Knows
``spec.history``.
"""
