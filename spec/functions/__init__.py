"""Single functions: their cases, what they should return, and what was observed of them.

``gather`` and ``book`` are the oracles; ``cases``, ``book_cases`` and ``scheduling_cases`` say what
is asked, ``observations`` what came back, ``findings`` what was wrong with it; ``case_files``
writes cases as JSON. They are judged in ``spec.monitor.functions``. Knows ``spec.rules`` and
``spec.record``.
"""
