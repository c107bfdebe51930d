"""Every known fault as a switch over the reference engine, so that a blind claim is seen.

In go the parts of a correct implementation, out come those of one with exactly that fault:
``switches`` names each fault and the claims that it breaks, ``in_book``, ``in_gathers`` and
``in_runs`` hold the overrides, ``scenarios`` the smallest run that shows each. ``worlds`` break
assumptions, which are no fault of any code. Knows ``impl.reference``, the harness and ``spec``.
"""
