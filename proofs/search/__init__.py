"""Random search: draw, judge, keep the smallest of each violation, and make it smaller.

In go a target and how hard to look; out come a verdict for each claim and a small case or run for
each violation. ``search`` collects and shrinks within given limits, ``reduce`` makes one thing
smaller; ``functions`` and ``runs`` give them what they draw, judge and leave out. Knows
``proofs.run``, ``proofs.describe`` and ``proofs.jobs``.
"""
