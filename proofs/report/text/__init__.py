"""Text that is safe where it is put: HTML, Markdown, Python, terminals; and short names for hashes.

In go texts from outside; out come harmless ones. Knows ``proofs.describe`` and
``spec.record``.
"""
