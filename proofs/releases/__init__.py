"""Several vLLMs at once: searched side by side, swept, and compared with one another.

In go the names of releases or checkouts; out come results for each, what is new, and what was
fixed. Knows ``proofs.drive`` and ``proofs.search``, and no report.
"""
