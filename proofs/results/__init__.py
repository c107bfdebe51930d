"""Results: what became of claims, and every format in which files and other tools are told of it.

In: outcomes and violations, from whatever engine found them. Out: one JSON document with a
published schema, JUnit, SARIF, GitHub's annotations and summary. It may know ``proofs.describe``,
``proofs.report.text``, ``spec`` and where a vLLM's source lies; every engine may know it.
"""
