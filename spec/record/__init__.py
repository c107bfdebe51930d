"""What is chosen and what is seen: scenario, configuration and steps, as frozen data and as JSON.

In go files; out come data whose shape was checked, and the other way round (``document``; schemas
in ``schema``). A trace holds no verdict. Knows ``spec.rules`` for the geometry of features.
"""
