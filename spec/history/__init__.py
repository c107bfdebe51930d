"""A trace, read once: what all who judge it must remember from one step to the next.

In go steps; out come what is in flight, where features lie, and a log for findings. Nothing here is
a verdict. Knows ``spec.record``.
"""
